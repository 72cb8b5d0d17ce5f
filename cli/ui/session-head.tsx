import { Box, Text } from 'ink'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { describeDestroyed } from './describe.ts'
import { factRows } from './layout.ts'
import { Line } from './line.tsx'
import { RemainingTime } from './remaining-time.tsx'
import { nameInFront, nameOf, type State, sessionInFront } from './state.ts'
import { oneLine } from './text.ts'
import { showAge, showClock, showDuration } from './time.ts'

export const SessionHead = ({ state, now }: { state: State; now: number }) => {
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
        <Text key={line} wrap="truncate" dimColor>
          {line}
        </Text>
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
