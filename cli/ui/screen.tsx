import { Box, Text } from 'ink'
import { Bottom } from './bottom.tsx'
import { methods } from './first-run.ts'
import { FormView } from './form-view.tsx'
import { commandLines, keysOf, type Where, whereIs } from './keys.ts'
import { Line } from './line.tsx'
import { ListPage } from './list-page.tsx'
import { OutputPage } from './output-page.tsx'
import { SessionPage } from './session-page.tsx'
import { type FirstRunPage as FirstRun, nameInFront, pageOf, type State } from './state.ts'
import { oneLine } from './text.ts'

interface Props {
  state: State
  now: number
  onVisible?: ((ids: string[]) => void) | undefined
}

export const Screen = ({ state, now, onVisible }: Props) => {
  const { dialog, size } = state
  return (
    <Box flexDirection="column" width={size.columns} height={size.rows} overflow="hidden">
      <Middle state={state} now={now} onVisible={onVisible} />
      {dialog?.kind === 'confirm' && <Line bold>{dialog.question} [y/N]</Line>}
      {dialog?.kind === 'message' && <Line bold>! {oneLine(dialog.text)}</Line>}
      {dialog?.kind !== 'help' && dialog?.kind !== 'copy' && <Bottom state={state} now={now} />}
    </Box>
  )
}

const Middle = ({ state, now, onVisible }: Props) => {
  const { dialog } = state
  const page = pageOf(state)
  if (dialog?.kind === 'help') return <HelpView state={state} top={dialog.top} />
  if (dialog?.kind === 'copy') return <CopyView state={state} at={dialog.at} />
  if (page.at === 'first-run') return <FirstRunPage state={state} page={page} />
  if (dialog?.kind === 'form' && !dialog.isPrompt) {
    return <FormView form={dialog.form} columns={state.size.columns} />
  }
  if (page.at === 'list') return <ListPage state={state} now={now} onVisible={onVisible} />
  if (page.at === 'session') return <SessionPage state={state} page={page} now={now} />
  return <OutputPage state={state} page={page} />
}

const HelpView = ({ state, top }: { state: State; top: number }) => {
  const where = whereIs(state)
  const lines = keysOf(where)
  const rows = state.size.rows - 2
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Line bold>{helpTitles[where]}</Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden">
        {lines.slice(top, top + rows).map(({ shown, label, applies }) => (
          <Box key={label} height={1}>
            <Box width={10} flexShrink={0}>
              <Text bold>{shown}</Text>
            </Box>
            <Line>
              {label}
              {applies && !applies(state) ? ' (not now)' : ''}
            </Line>
          </Box>
        ))}
      </Box>
      <Line dimColor>{lines.length > rows ? '↑ ↓ more · ' : ''}any other key: back</Line>
    </Box>
  )
}

const helpTitles: Record<Where, string> = {
  'first-run': 'Keys',
  list: 'Keys for the list',
  commands: "Keys for the session's commands",
  files: "Keys for the session's files",
  output: 'Keys for the output',
}

const CopyView = ({ state, at }: { state: State; at: number }) => {
  const name = nameInFront(state)
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Line bold>Copy the equivalent command line{name && ` in ${oneLine(name)}`}</Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden" aria-role="list">
        {commandLines(state).map(({ key: { shown, label }, text }, index) => (
          <Box key={label} height={1} aria-role="listitem" aria-state={{ selected: index === at }}>
            <Box width={10} flexShrink={0}>
              <Text bold>
                {index === at ? '›' : ' '} {shown}
              </Text>
            </Box>
            <Line inverse={index === at}>{oneLine(text)}</Line>
          </Box>
        ))}
      </Box>
      <Line dimColor>Enter, or its key, copies · Esc back</Line>
    </Box>
  )
}

const FirstRunPage = ({ state, page }: { state: State; page: FirstRun }) => (
  <Box flexDirection="column" flexGrow={1} overflow="hidden" gap={state.size.rows < 16 ? 0 : 1}>
    <Line bold>Welcome to Sandlot: short-lived, isolated sandboxes</Line>
    {page.step !== 'address' && <Line>The service: {oneLine(page.address)}</Line>}
    {page.step === 'method' && <Methods at={page.method} />}
    {state.dialog?.kind === 'form' && <FormView form={state.dialog.form} columns={state.size.columns} />}
  </Box>
)

const Methods = ({ at }: { at: number }) => (
  <Box flexDirection="column" aria-role="list">
    {methods.map(({ step, label }, index) => (
      <Box key={step} height={1} aria-role="listitem" aria-state={{ selected: index === at }}>
        <Line bold={index === at} inverse={index === at}>
          {index === at ? '› ' : '  '}
          {label}
        </Line>
      </Box>
    ))}
  </Box>
)
