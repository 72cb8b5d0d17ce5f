/** Formats times, and tracks the service's clock. */

const steps = [
  [172_800, 86_400, 'days'],
  [7_200, 3_600, 'h'],
  [120, 60, 'min'],
] as const

/** `90 s`, `5 min`, `3 h`, `12 days`, rounded up. */
export function showSeconds(seconds: number): string {
  const [, unit, name] = steps.find(([least]) => seconds >= least) ?? [0, 1, 's']
  return `${Math.ceil(seconds / unit)} ${name}`
}

/** Smaller changes come from the network, and from the `Date` header, which has whole seconds. */
const minSkewMs = 2_000
let aheadMs = 0

/** Learns the service's clock from the `Date` header of an answer. */
export function setServiceClock(date: string | undefined, now = Date.now()): void {
  // On average the header leaves out half a second.
  const ahead = Date.parse(date ?? '') + 500 - now
  if (Math.abs(ahead - aheadMs) >= minSkewMs) aheadMs = ahead
}

/** The time by the service's clock; by this machine's clock until the service has answered. */
export const serviceNow = (): number => Date.now() + aheadMs

/** `5 min ago`, `in 3 h`; RFC 3339 for programs. */
export function showTime(time: string, now = serviceNow()): string {
  if (!process.stdout.isTTY) return time
  const seconds = (Date.parse(time) - now) / 1000
  if (Number.isNaN(seconds)) return time
  return seconds > 0 ? `in ${showSeconds(seconds)}` : `${showSeconds(Math.floor(-seconds))} ago`
}
