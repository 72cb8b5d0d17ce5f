import { Line } from './line.tsx'
import type { State } from './state.ts'
import { oneLine } from './text.ts'
import { showAge, showClock } from './time.ts'

/** That the service is away, and since when; nothing while it answers. */
export const TroubleLine = ({ state, now }: { state: State; now: number }) => {
  const { trouble } = state
  if (!trouble) return null
  // `since` is by our clock, `now` is the service's time.
  const here = now - state.clockAhead
  return (
    <Line color="yellow">
      ! {trouble.isAway ? 'Service away' : 'Refused'} since {showClock(trouble.since)} (
      {showAge(here - trouble.since)}), trying again. {oneLine(trouble.message)}
    </Line>
  )
}
