/** All times and durations in this file are in milliseconds. */
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Formats an age, for example as `5s`, `3m`, `2h` or `4d`. */
export function showAge(ms: number): string {
  if (ms < minute) return `${Math.max(0, Math.floor(ms / second))}s`
  if (ms < hour) return `${Math.floor(ms / minute)}m`
  if (ms < 2 * day) return `${Math.floor(ms / hour)}h`
  return `${Math.floor(ms / day)}d`
}

/** Formats the remaining time, such as `4:05` or `1:00:00`. Rounds up: `0:00` means that no time is left. */
export function formatRemainingTime(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / second))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const tail = String(rest).padStart(2, '0')
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${tail}` : `${minutes}:${tail}`
}

/** Describes the remaining time for screen readers. Uses minutes, because seconds would change constantly. */
export function describeRemainingTime(ms: number): string {
  if (ms <= 0) return 'no time left'
  if (ms < minute) return 'less than a minute left'
  return `${Math.round(ms / minute)} min left`
}

/** Formats a duration, for example as `250 ms`, `3.2 s` or `4 m 5 s`. */
export function showDuration(ms: number): string {
  if (ms < second) return `${Math.round(ms)} ms`
  if (ms < minute) return `${(ms / second).toFixed(1)} s`
  return `${Math.floor(ms / minute)} m ${Math.floor((ms % minute) / second)} s`
}

/** Formats the local time of day, for example as `14:02:11`. */
export const showClock = (ms: number): string => new Date(ms).toTimeString().slice(0, 8)
