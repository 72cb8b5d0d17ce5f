import { Box, Text } from 'ink'
import { CommandsTab } from './commands-tab.tsx'
import { FilesTab } from './files-tab.tsx'
import { Line } from './line.tsx'
import { SessionHead } from './session-head.tsx'
import type { SessionPage as Page, State } from './state.ts'

export const SessionPage = ({ state, page, now }: { state: State; page: Page; now: number }) => (
  <Box flexDirection="column" flexGrow={1} overflow="hidden">
    <SessionHead state={state} now={now} />
    <Line>
      <Tab name="Commands" isOpen={page.tab === 'commands'} />{' '}
      <Tab name="Files" isOpen={page.tab === 'files'} />
    </Line>
    {page.tab === 'commands' ? (
      <CommandsTab state={state} page={page} now={now} />
    ) : (
      <FilesTab state={state} page={page} />
    )}
  </Box>
)

const Tab = ({ name, isOpen }: { name: string; isOpen: boolean }) => (
  <Text bold={isOpen} dimColor={!isOpen}>
    {isOpen ? `[${name}]` : ` ${name} `}
  </Text>
)
