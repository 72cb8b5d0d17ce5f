import { troubleRows } from './layout.ts'
import { Line } from './line.tsx'
import type { State } from './state.ts'
import { showAge, showClock } from './time.ts'

export const TroubleLine = ({ state, now }: { state: State; now: number }) => {
  const { trouble } = state
  if (!trouble) return null
  const age = showAge(now - trouble.since)
  const [reason, ...below] = troubleRows(state)
  return (
    <>
      <Line color="yellow">
        ! {trouble.isUnavailable ? 'Service unavailable' : 'Refused'} since {showClock(trouble.since)} ({age}
        ), retrying. {reason}
      </Line>
      {below.map((row, index) => (
        <Line key={index} color="yellow">
          {'  '}
          {row}
        </Line>
      ))}
    </>
  )
}
