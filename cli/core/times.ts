const steps = [
  [172_800, 86_400, 'days'],
  [7_200, 3_600, 'h'],
  [120, 60, 'min'],
] as const

/** Formats a duration for display, for example as `90 s`, `5 min`, `3 h` or `12 days`. Rounds up. */
export function showSeconds(seconds: number): string {
  const [, unit, name] = steps.find(([min]) => seconds >= min) ?? [0, 1, 's']
  return `${Math.ceil(seconds / unit)} ${name}`
}

/**
 * Minimum clock skew to correct. Smaller differences may be due to latency and the one-second resolution of
 * the HTTP `Date` header.
 */
const minSkewMs = 2_000
let aheadMs = 0

/** Adjusts {@link serviceNow} to the service's clock. @param date the `Date` header of a response */
export function setServiceClock(date: string | undefined, now = Date.now()): void {
  // The header has whole seconds, so on average it is half a second behind.
  const ahead = Date.parse(date ?? '') + 500 - now
  if (Math.abs(ahead - aheadMs) >= minSkewMs) aheadMs = ahead
}

/** Returns the service's time in milliseconds. Before the first response, returns this machine's time. */
export const serviceNow = (): number => Date.now() + aheadMs

/** Formats a time for terminals as `5 min ago` or `in 3 h`. Returns it unchanged for programs. */
export function showTime(time: string, now = serviceNow()): string {
  if (!process.stdout.isTTY) return time
  const seconds = (Date.parse(time) - now) / 1000
  if (Number.isNaN(seconds)) return time
  return seconds > 0 ? `in ${showSeconds(seconds)}` : `${showSeconds(Math.floor(-seconds))} ago`
}
