import { Box, Text } from 'ink'
import { ways } from './first-run.ts'
import { FormView } from './form-view.tsx'
import type { FirstRunPage as Page, State } from './state.ts'
import { oneLine } from './text.ts'

/** The first-run page: the address of the service, and the credentials. */
export const FirstRunPage = ({ state, page }: { state: State; page: Page }) => (
  <Box flexDirection="column" flexGrow={1} overflow="hidden" gap={state.size.rows < 16 ? 0 : 1}>
    <Text wrap="truncate" bold>
      Welcome to Sandlot: short-lived, isolated sandboxes
    </Text>
    {page.step !== 'address' && <Text wrap="truncate">The service: {oneLine(page.address)}</Text>}
    {page.step === 'way' && <Ways at={page.way} />}
    {state.dialog?.kind === 'form' && <FormView form={state.dialog.form} columns={state.size.columns} />}
  </Box>
)

const Ways = ({ at }: { at: number }) => (
  <Box flexDirection="column" aria-role="list">
    {ways.map(({ step, label }, index) => (
      <Box key={step} height={1} aria-role="listitem" aria-state={{ selected: index === at }}>
        <Text wrap="truncate" bold={index === at} inverse={index === at}>
          {index === at ? '› ' : '  '}
          {label}
        </Text>
      </Box>
    ))}
  </Box>
)
