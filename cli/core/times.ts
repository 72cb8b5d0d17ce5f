/** Times for people. */

const steps = [
  [172_800, 86_400, 'days'],
  [7_200, 3_600, 'h'],
  [120, 60, 'min'],
] as const

/** `90 s`, `5 min`, `3 h`, `12 days`: rounded up, so that it never promises too much. */
export function showSeconds(seconds: number): string {
  const [, unit, name] = steps.find(([least]) => seconds >= least) ?? [0, 1, 's']
  return `${Math.ceil(seconds / unit)} ${name}`
}

/** A smaller difference may come from the `Date` header, which has whole seconds, and from the network. */
const minSkewMs = 2_000
/** By how much the service's clock is ahead of this machine's. */
let aheadMs = 0

/** Learns the service's clock from the `Date` header of an answer. */
export function setServiceClock(date: string | undefined, now = Date.now()): void {
  // The header leaves out the fraction of the second: on average half a second.
  const ahead = Date.parse(date ?? '') + 500 - now
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) < minSkewMs ? 0 : ahead
}

/** The time by the service's clock, once it has answered. */
export const serviceNow = (): number => Date.now() + aheadMs

/** `5 min ago`, `in 3 h` on a terminal; for programs the time itself, which is RFC 3339. */
export function showTime(time: string, now = serviceNow()): string {
  if (!process.stdout.isTTY) return time
  const seconds = (Date.parse(time) - now) / 1000
  if (Number.isNaN(seconds)) return time
  return seconds > 0 ? `in ${showSeconds(seconds)}` : `${showSeconds(Math.floor(-seconds))} ago`
}
