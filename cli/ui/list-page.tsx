import { Box, Text } from 'ink'
import { useEffect } from 'react'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { isChosen } from '../core/session.ts'
import { marked } from '../files/tar-commands.ts'
import { describeStatus } from './describe.ts'
import { detailRows, isWide, listRows, useWindow, wideColumns } from './layout.ts'
import { Bar, Line } from './line.tsx'
import { RemainingTime } from './remaining-time.tsx'
import { listedSessions, nameOf, type State, sessionInFront } from './state.ts'
import { oneLine } from './text.ts'
import { showAge } from './time.ts'

interface Props {
  state: State
  now: number
  onVisible?: ((ids: string[]) => void) | undefined
}

export const ListPage = ({ state, now, onVisible }: Props) => {
  const listed = listedSessions(state)
  const inFront = sessionInFront(state)
  const { at, shown } = useWindow(listed, listRows(state), ({ id }) => id === inFront?.id)
  const widths = widthsFor(state.size.columns, Math.max(0, ...listed.map(({ image }) => image.length)))
  const visible = [inFront, ...shown].flatMap((session) => session?.id ?? []).join(' ')
  useEffect(() => onVisible?.(visible.split(' ').filter(Boolean)), [onVisible, visible])
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Header state={state} />
      <Box height={1} flexShrink={0} gap={1} justifyContent="space-between">
        <Line dimColor>{headOf(state, widths)}</Line>
        <Box flexShrink={0}>
          <Text dimColor>{placeOf(state, at, listed.length)}</Text>
        </Box>
      </Box>
      <Box flexDirection="column" flexGrow={1} overflow="hidden" aria-role="list">
        {listed.length === 0 && <Line>{emptyText(state)}</Line>}
        {shown.map((session) => (
          <SessionLine
            key={session.id}
            session={session}
            lastCommand={state.lastCommands.get(session.id)}
            isSelected={session.id === inFront?.id}
            isChosen={isChosen(session, state.chosen)}
            now={now}
            widths={widths}
          />
        ))}
      </Box>
      {detailRows(state) > 0 && inFront && (
        <Line dimColor>
          {oneLine(inFront.image)} {commandText(inFront, state.lastCommands.get(inFront.id))}
        </Line>
      )}
    </Box>
  )
}

const Header = ({ state }: { state: State }) => {
  const { account, address, size, trouble } = state
  const wide = isWide(state)
  const width = Math.max(4, Math.min(12, Math.floor((size.columns - 34) / 4)))
  const who = account
    ? oneLine(account.email)
    : `${oneLine(address ?? '')}  ${trouble?.isUnavailable ? 'no answer' : 'loading…'}`
  return (
    <Box flexDirection="column" flexShrink={0}>
      <Box flexDirection={wide ? 'row' : 'column'} justifyContent="space-between" gap={wide ? 2 : 0}>
        <Text wrap="truncate-middle" bold>
          {who}
        </Text>
        {account && (
          <Box gap={2} height={1} flexShrink={0}>
            <Meter
              label={`${account.concurrent.active}/${account.concurrent.limit}${wide ? ' sessions' : ''}`}
              fraction={account.concurrent.active / Math.max(1, account.concurrent.limit)}
              width={width}
            />
            <Meter
              label={`${account.usage.sandbox_hours.toFixed(1)}/${account.usage.limit} h${wide ? ' of the month' : ''}`}
              fraction={account.usage.sandbox_hours / Math.max(0.001, account.usage.limit)}
              width={width}
            />
          </Box>
        )}
      </Box>
      <Line dimColor aria-hidden>
        {'─'.repeat(size.columns)}
      </Line>
    </Box>
  )
}

const Meter = ({ label, fraction, width }: { label: string; fraction: number; width: number }) => (
  <Box gap={1} flexShrink={0}>
    <Line bold={fraction >= 1}>{label}</Line>
    <Bar
      fraction={fraction}
      width={width}
      color={fraction >= 1 ? 'red' : fraction >= 0.8 ? 'yellow' : 'cyan'}
    />
  </Box>
)

function headOf({ showsDestroyed, filter }: State, widths: Widths): string {
  const name = `  ${showsDestroyed ? 'ALL ' : ''}SESSIONS${filter === '' ? '' : ` /${filter}`}`
  if (widths.command === 0) return name
  return [
    name.padEnd(widths.name + 1),
    'IMAGE'.padEnd(widths.image),
    ' AGE',
    'TIME LEFT'.padEnd(widths.left),
    'LAST COMMAND',
  ].join(' ')
}

/**
 * Returns the position of the selection, such as `3 of 100+`. The plus means that there are more sessions.
 */
function placeOf({ showsDestroyed, destroyedFrom }: State, at: number, count: number): string {
  return count === 0 ? '' : `${at + 1} of ${count}${showsDestroyed && destroyedFrom ? '+' : ''}`
}

function emptyText({ sessions, filter, trouble }: State): string {
  if (sessions === undefined && trouble)
    return `  The sessions are not loaded yet: the service ${trouble.isUnavailable ? 'does not answer' : 'refuses'}.`
  if (sessions === undefined) return '  loading…'
  return filter === '' ? '  No sessions. Press n to create one.' : '  No session matches the filter.'
}

const ageWidth = 4
/** Column widths in terminal cells. A width of 0 omits the column. */
interface Widths {
  name: number
  image: number
  bar: number
  left: number
  command: number
}

/** Returns the column widths. Narrow screens show only the columns needed to choose a session. */
function widthsFor(columns: number, longestImage: number): Widths {
  const marker = 2
  if (columns < wideColumns) {
    const bar = columns < 50 ? 5 : 8
    const name = Math.max(6, columns - marker - ageWidth - bar - 10)
    return { name, image: 0, bar, left: bar + 8, command: 0 }
  }
  const name = Math.min(32, Math.floor(columns * 0.26))
  const room = Math.floor(columns * 0.16) + Math.max(0, Math.floor((columns - 80) / 2))
  const image = Math.min(Math.max('IMAGE'.length, longestImage), room)
  const [bar, left] = [8, 16]
  return { name, image, bar, left, command: columns - marker - name - image - ageWidth - left - 4 }
}

interface SessionProps {
  session: Sandbox
  /** Last command of the session: null if none has been run, undefined until loaded. */
  lastCommand: ExecSummary | null | undefined
  isSelected: boolean
  isChosen: boolean
  now: number
  widths: Widths
}

const SessionLine = ({ session, lastCommand, isSelected, isChosen, now, widths }: SessionProps) => (
  <Box height={1} gap={1} aria-role="listitem" aria-state={{ selected: isSelected }}>
    <Box width={1 + widths.name} flexShrink={0}>
      <Text wrap="truncate-middle" bold={isSelected} inverse={isSelected}>
        {isSelected ? '›' : ' '}
        {oneLine(nameOf(session))}
        {isChosen && ' *'}
      </Text>
    </Box>
    {widths.image > 0 && (
      <Box width={widths.image} flexShrink={0}>
        <Text wrap="truncate-middle" dimColor>
          {oneLine(session.image)}
        </Text>
      </Box>
    )}
    <Box width={ageWidth} flexShrink={0} justifyContent="flex-end">
      <Text>{showAge(now - Date.parse(session.created_at))}</Text>
    </Box>
    <Box width={widths.left} flexShrink={0}>
      <RemainingTime session={session} now={now} width={widths.bar} />
    </Box>
    {widths.command > 0 && (
      <Box width={widths.command} flexShrink={0}>
        <Line>{commandText(session, lastCommand)}</Line>
      </Box>
    )}
  </Box>
)

function commandText(session: Sandbox, command: ExecSummary | null | undefined): string {
  if (session.state === 'active' && session.ready_at === null) return 'starting…'
  if (command === undefined) return '…'
  if (command === null) return '–'
  return `${describeStatus(command).sign} ${oneLine(marked(command.command))}`
}
