import { Box } from 'ink'
import { methods } from './first-run.ts'
import { FormView } from './form-view.tsx'
import { Line } from './line.tsx'
import type { FirstRunPage as Page, State } from './state.ts'
import { oneLine } from './text.ts'

export const FirstRunPage = ({ state, page }: { state: State; page: Page }) => (
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
