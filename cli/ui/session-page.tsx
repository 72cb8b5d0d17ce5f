import { Box, Text } from 'ink'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { marked } from '../files/tar-commands.ts'
import { describeDestroyed, describeStatus } from './describe.ts'
import { type Row, rowsOf, selectedRow } from './folder.ts'
import { bodyRows, factRows, useWindow } from './layout.ts'
import { Line } from './line.tsx'
import { RemainingTime } from './remaining-time.tsx'
import {
  nameInFront,
  nameOf,
  type SessionPage as Page,
  type State,
  selectedCommand,
  sessionInFront,
} from './state.ts'
import { oneLine } from './text.ts'
import { showAge, showClock, showDuration } from './time.ts'

interface Props {
  state: State
  page: Page
  now: number
}

export const SessionPage = ({ state, page, now }: Props) => (
  <Box flexDirection="column" flexGrow={1} overflow="hidden">
    <Head state={state} now={now} />
    <Line>
      <Tab name="Commands" isOpen={page.tab === 'commands'} />{' '}
      <Tab name="Files" isOpen={page.tab === 'files'} />
    </Line>
    {page.tab === 'commands' ? (
      <Commands state={state} page={page} now={now} />
    ) : (
      <Files state={state} page={page} />
    )}
  </Box>
)

const Tab = ({ name, isOpen }: { name: string; isOpen: boolean }) => (
  <Text bold={isOpen} dimColor={!isOpen}>
    {isOpen ? `[${name}]` : ` ${name} `}
  </Text>
)

const Head = ({ state, now }: { state: State; now: number }) => {
  const session = sessionInFront(state)
  if (!session) return <Text>‹ {nameInFront(state)}: this session is no longer listed.</Text>
  const facts = factsOf(session, now)
  const isEnded = session.state === 'destroyed'
  return (
    <Box flexDirection="column" flexShrink={0}>
      <Box height={1} justifyContent="space-between" gap={2}>
        <Text wrap="truncate-middle" bold>
          ‹ {oneLine(nameOf(session))}
        </Text>
        <Box flexShrink={0}>
          <RemainingTime session={session} now={now} width={state.size.columns < 60 ? 6 : 16} />
        </Box>
      </Box>
      {isEnded && (
        <Line bold color="yellow">
          ! Ended{session.destroyed_at && ` at ${showClock(Date.parse(session.destroyed_at))}`}:{' '}
          {describeDestroyed(session)}
        </Line>
      )}
      {facts.slice(0, factRows(state) - (isEnded ? 1 : 0)).map((line) => (
        <Line key={line} dimColor>
          {line}
        </Line>
      ))}
    </Box>
  )
}

function factsOf(session: Sandbox, now: number): string[] {
  const { id, image, created_at, ready_at, billed_seconds, metadata } = session
  const start =
    ready_at === null
      ? 'not ready yet'
      : `ready after ${showDuration(Date.parse(ready_at) - Date.parse(created_at))}`
  const labels = Object.entries(metadata).map(([key, value]) => `${key}=${value}`)
  return [
    `${id}  ${oneLine(image)}`,
    `created ${showAge(now - Date.parse(created_at))} ago, ${start}, ${Math.round(billed_seconds)} s billed`,
    labels.length === 0 ? 'no metadata' : oneLine(labels.join('  ')),
  ]
}

const Commands = ({ state, page, now }: Props) => {
  const commands = page.commands ?? []
  const selected = selectedCommand(page)
  const { shown } = useWindow(commands, bodyRows(state), (command) => command === selected)
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden" aria-role="list">
      {commands.length === 0 && <Line> {page.commands ? noCommandsText(state) : 'loading…'}</Line>}
      {shown.map((command) => (
        <CommandLine key={command.id} command={command} isSelected={command === selected} now={now} />
      ))}
    </Box>
  )
}

const noCommandsText = (state: State) =>
  sessionInFront(state)?.state === 'active'
    ? 'No commands yet. Press x to run one, or s to open a shell.'
    : 'No commands were run in this session.'

const CommandLine = (props: { command: ExecSummary; isSelected: boolean; now: number }) => {
  const { command, isSelected, now } = props
  const { sign, text } = describeStatus(command)
  return (
    <Box height={1} gap={1} aria-role="listitem" aria-state={{ selected: isSelected }}>
      <Box width={14} flexShrink={0}>
        <Line bold={isSelected} inverse={isSelected}>
          {isSelected ? '›' : ' '}
          {sign} {text}
        </Line>
      </Box>
      <Box width={4} flexShrink={0} justifyContent="flex-end">
        <Text dimColor>{showAge(now - Date.parse(command.started_at))}</Text>
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

const Files = ({ state, page: { folder } }: { state: State; page: Page }) => {
  const all = rowsOf(folder)
  const selected = selectedRow(folder)
  const { shown } = useWindow(all, Math.max(1, bodyRows(state) - 1), ({ key }) => key === selected?.key)
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Text wrap="truncate-start" bold>
        {oneLine(folder.path)}
        {folder.isCut ? ' (truncated)' : ''}
      </Text>
      {all.length === 0 && <Text>{folder.entries ? '  (empty)' : '  …'}</Text>}
      {shown.map((row) => (
        <FileLine key={row.key} row={row} isSelected={row.key === selected?.key} />
      ))}
    </Box>
  )
}

const FileLine = ({ row: { entry }, isSelected }: { row: Row; isSelected: boolean }) => (
  <Box
    height={1}
    justifyContent="space-between"
    gap={1}
    aria-role="listitem"
    aria-state={{ selected: isSelected }}
  >
    <Line bold={isSelected} inverse={isSelected}>
      {isSelected ? '›' : ' '} {oneLine(entry.name)}
      {entry.type === 'directory' ? '/' : ''}
      {entry.target === undefined ? '' : ` → ${oneLine(entry.target)}`}
    </Line>
    <Box flexShrink={0}>
      <Text dimColor>{entry.type === 'file' ? showSize(entry.size) : ''}</Text>
    </Box>
  </Box>
)

function showSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB']
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`
}
