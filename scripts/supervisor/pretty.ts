/** A line of JSON from pino, readable: time, level, message, then the other fields. */
import { levels } from 'pino'

const levelColors: Record<string, number> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 }
/** The same in every line of a process. */
const left = new Set(['time', 'level', 'msg', 'pid', 'hostname', 'role', 'err'])

/** Returns anything that is not a log line unchanged. */
export function prettyLine(line: string, colored: boolean): string {
  const entry = parseEntry(line)
  if (entry === undefined) return line
  const level = levels.labels[entry.level as number] ?? String(entry.level)
  const paint = (code: number | undefined, text: string) =>
    colored && code ? `\x1b[${code}m${text}\x1b[0m` : text
  const fields = Object.entries(entry)
    .filter(([name]) => !left.has(name))
    .map(([name, value]) => paint(90, `${name}=`) + wordsOf(value))
  const words = [
    paint(90, clock(entry.time)),
    paint(levelColors[level], level.toUpperCase().padEnd(5)),
    entry.msg ?? '',
    ...fields,
  ]
  return [words.filter((word) => word !== '').join(' '), ...errorLines(entry.err)].join('\n')
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const entry = JSON.parse(line) as Record<string, unknown>
    return entry.level !== undefined && entry.time !== undefined ? entry : undefined
  } catch {
    return undefined
  }
}

/** The time of day here, from milliseconds or RFC 3339. */
function clock(time: unknown): string {
  const date = new Date(time as string | number)
  if (Number.isNaN(date.getTime())) return String(time)
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(11, 23)
}

function wordsOf(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)
}

function errorLines(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return []
  const { type, message, stack, cause } = error as Record<string, unknown>
  const text = typeof stack === 'string' ? stack : `${type ?? 'Error'}: ${message}`
  const all = cause === undefined ? text : `${text}\ncaused by ${wordsOf(cause)}`
  return all.split('\n').map((line) => `    ${line}`)
}
