import { Box, Text } from 'ink'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import { marked } from '../files/tar-commands.ts'
import { describeStatus } from './describe.ts'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import { selectedCommand } from './outputs.ts'
import { type SessionPage, type State, sessionInFront } from './state.ts'
import { oneLine } from './text.ts'
import { showAge, showDuration } from './time.ts'
import { useWindow } from './use-window.ts'

export const CommandsTab = ({ state, page, now }: { state: State; page: SessionPage; now: number }) => {
  const commands = page.commands ?? []
  const selected = selectedCommand(page)
  const { shown } = useWindow(commands, bodyRows(state), (command) => command === selected)
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden" aria-role="list">
      {commands.length === 0 && <Line> {page.commands ? emptyText(state) : 'loading…'}</Line>}
      {shown.map((command) => (
        <CommandLine key={command.id} command={command} isSelected={command === selected} now={now} />
      ))}
    </Box>
  )
}

const emptyText = (state: State) =>
  sessionInFront(state)?.state === 'active'
    ? 'No commands yet. Press x to run one, or s to open a shell.'
    : 'No command was run in this session.'

const CommandLine = (props: { command: ExecSummary; isSelected: boolean; now: number }) => {
  const { command, isSelected, now } = props
  const { sign, text } = describeStatus(command)
  const age = showAge(now - Date.parse(command.started_at))
  return (
    <Box height={1} gap={1} aria-role="listitem" aria-state={{ selected: isSelected }}>
      <Box width={14} flexShrink={0}>
        <Line bold={isSelected} inverse={isSelected}>
          {isSelected ? '›' : ' '}
          {sign} {text}
        </Line>
      </Box>
      <Box width={4} flexShrink={0} justifyContent="flex-end">
        <Text dimColor>{age}</Text>
      </Box>
      <Box width={9} flexShrink={0} justifyContent="flex-end">
        <Text dimColor>{command.status === 'running' ? '' : showDuration(command.duration_ms)}</Text>
      </Box>
      <Line>
        {command.tty ? '(terminal) ' : ''}
        {oneLine(marked(command.command))}
      </Line>
    </Box>
  )
}
