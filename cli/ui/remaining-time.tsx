import { Box } from 'ink'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { Bar, Line } from './line.tsx'
import { describeRemainingTime, formatRemainingTime, showAge } from './time.ts'

/** Shows the remaining time of a session, or how long ago the session ended. */
export const RemainingTime = (props: { session: Sandbox; now: number; width: number }) => {
  const { session, now, width } = props
  const { state, created_at, expires_at, destroyed_at, destroy_reason } = session
  if (state === 'destroyed') {
    const ago = showAge(now - Date.parse(destroyed_at ?? expires_at))
    return (
      <Line dimColor>
        {destroy_reason === 'expired' ? 'expired' : 'ended'} {ago} ago
      </Line>
    )
  }
  const left = Date.parse(expires_at) - now
  const life = Math.max(1, Date.parse(expires_at) - Date.parse(created_at))
  return (
    <Box gap={1}>
      <Bar fraction={left / life} width={width} color={colorOf(left)} />
      <Line aria-label={describeRemainingTime(left)}>{left <= 0 ? 'ending' : formatRemainingTime(left)}</Line>
    </Box>
  )
}

const colorOf = (left: number) => (left < 60_000 ? 'red' : left < 300_000 ? 'yellow' : 'green')
