/** Times as people say them. All are milliseconds. */
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** `5s`, `3m`, `2h`, `4d`: how long ago. */
export function showAge(ms: number): string {
  if (ms < minute) return `${Math.max(0, Math.floor(ms / second))}s`
  if (ms < hour) return `${Math.floor(ms / minute)}m`
  if (ms < 2 * day) return `${Math.floor(ms / hour)}h`
  return `${Math.floor(ms / day)}d`
}

/** `4:05`, `1:00:00`: what is left, rounded up so that 0:00 is the end. */
export function showLeft(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / second))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const tail = `${String(rest).padStart(2, '0')}`
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${tail}` : `${minutes}:${tail}`
}

/** The same for screen readers: minutes only, because seconds would change all the time. */
export function sayLeft(ms: number): string {
  if (ms <= 0) return 'no time left'
  if (ms < minute) return 'less than a minute left'
  return `${Math.round(ms / minute)} min left`
}

/** `250 ms`, `3.2 s`, `4 m 5 s`: how long something took. */
export function showDuration(ms: number): string {
  if (ms < second) return `${Math.round(ms)} ms`
  if (ms < minute) return `${(ms / second).toFixed(1)} s`
  return `${Math.floor(ms / minute)} m ${Math.floor((ms % minute) / second)} s`
}

/** `14:02:11`, where we are. */
export const showClock = (ms: number): string => new Date(ms).toTimeString().slice(0, 8)
