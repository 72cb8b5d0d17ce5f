import { CliError } from './errors.ts'
import { serviceNow } from './times.ts'

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Parses `500ms`, `30s`, `10m`, `1h`, or a number of seconds. @returns milliseconds, at least 1 */
export function readDuration(text: string, option: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  const milliseconds = Math.round(Number(amount) * units[unit]!)
  if (milliseconds >= 1) return milliseconds
  const shown = JSON.stringify(text)
  throw new CliError('usage', `${option} ${shown} is not a duration such as 500ms, 30s, 10m or 1h.`)
}

/** Like {@link readDuration}, but returns whole seconds. */
export const readSeconds = (text: string, option: string): number =>
  Math.max(1, Math.round(readDuration(text, option) / 1000))

/** Like {@link readDuration}, but also accepts `0`. */
export const readWait = (text: string, option: string): number =>
  text === '0' ? 0 : readDuration(text, option)

/** Converts a time given as an age, such as `10m`, to an RFC 3339 time. Returns any other text unchanged. */
export const readPast = (text: string, option: string): string =>
  /^\d+(?:\.\d+)?[a-z]*$/.test(text)
    ? new Date(serviceNow() - readDuration(text, option)).toISOString()
    : text

export function readPairs(texts: string[] | undefined, option: string): Record<string, string> | undefined {
  if (texts === undefined) return undefined
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new CliError('usage', `${option} ${JSON.stringify(text)} is not NAME=VALUE.`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

/** Parses an inclusive line range such as `3:7`, `3-7`, `3:`, `:7` or `3`. Lines are numbered from 1. */
export function readLines(text: string): { start_line: number | undefined; end_line: number | undefined } {
  const [, first, colon, last] = /^(\d+)?(:)?(\d+)?$/.exec(text.replace(/^(\d+)-(\d+)$/, '$1:$2')) ?? []
  const start = first === undefined ? undefined : Number(first)
  const end = colon === undefined ? start : last === undefined ? undefined : Number(last)
  const isRange = start !== undefined || end !== undefined
  if (isRange && start !== 0 && end !== 0 && (start ?? 1) <= (end ?? Infinity))
    return { start_line: start, end_line: end }
  throw new CliError('usage', `--lines ${JSON.stringify(text)} is not a range such as 3:7, 3:, :7 or 3.`)
}

export function readCount(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new CliError('usage', `${option} ${JSON.stringify(text)} is not a positive integer.`)
}
