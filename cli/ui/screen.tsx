import { Box } from 'ink'
import { Bottom } from './bottom.tsx'
import { CopyView } from './copy-view.tsx'
import { FirstRunPage } from './first-run-page.tsx'
import { FormView } from './form-view.tsx'
import { HelpView } from './help-view.tsx'
import { Line } from './line.tsx'
import { ListPage } from './list-page.tsx'
import { OutputPage } from './output-page.tsx'
import { SessionPage } from './session-page.tsx'
import { pageOf, type State } from './state.ts'
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
