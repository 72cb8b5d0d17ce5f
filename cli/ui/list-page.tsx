import { Box, Text } from 'ink'
import { useEffect } from 'react'
import { isChosen } from '../core/session.ts'
import { Header } from './header.tsx'
import { detailRows, listRows } from './layout.ts'
import { Line } from './line.tsx'
import { commandText, SessionLine, type Widths, widthsFor } from './session-line.tsx'
import { listedSessions, type State, sessionInFront } from './state.ts'
import { oneLine } from './text.ts'
import { useWindow } from './use-window.ts'

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
 * Returns the position of the selection, such as `3 of 100+`. The plus means that the service has more
 * sessions.
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
