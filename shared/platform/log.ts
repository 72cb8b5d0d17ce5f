/**
 * Opens the log. Commands, environments and credentials are never logged. Callers log IDs and numbers, and
 * routes instead of URLs.
 */
import { type DestinationStream, type LoggerOptions, type Logger as PinoLogger, pino } from 'pino'

export type Logger = PinoLogger
type Destination = DestinationStream & { flush?(): void }

const flushMs = 100

/**
 * Opens stdout with a buffer, because a system call for each line costs CPU time. Lines are flushed every
 * {@link flushMs}, after a warning or error, and at exit. A killed process loses at most the buffered lines.
 */
const openStdout = (): Destination =>
  pino.destination({ dest: 1, sync: false, minLength: 4096, periodicFlush: flushMs })

/** Defense in depth: no caller logs these fields. The option `redact` of pino would double the cost of a line. */
const withheld = Object.fromEntries(
  ['authorization', 'password', 'env', 'stdin', 'command'].map((name) => [name, () => '[Redacted]']),
)

export function openLog(role: string, level: string, out: Destination = openStdout()): Logger {
  const options: LoggerOptions = {
    level,
    base: { role, pid: process.pid },
    formatters: { level: (label) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError, ...withheld },
    hooks: {
      logMethod(args, log, level) {
        log.apply(this, args)
        // Unlike `this.flush()`, this adds no listeners, which accumulate while stdout is blocked.
        if (level >= this.levels.values.warn!) out.flush?.()
      },
    },
  }
  return pino(options, out)
}

/**
 * Error codes of broken connections. Their stack traces contain only Node functions, so they are not logged.
 */
const brokenConnection = new Set<unknown>(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/**
 * Returns only the fields of an error that are safe to log. Database drivers attach query parameters to
 * errors.
 */
function describeError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, sqlState } = error as { code?: unknown; sqlState?: unknown }
  return {
    type: error.name,
    message: error.message.split('\n')[0],
    code: code ?? sqlState,
    stack: brokenConnection.has(code) ? undefined : error.stack,
    cause: error.cause instanceof Error ? error.cause.message.split('\n')[0] : undefined,
  }
}

const repeatMs = 10_000
/** Maximum number of remembered error causes. At this limit, all are forgotten and may be logged again. */
const maxCauses = 1_000
const causes = new Map<string, { loggedAt: number; repeated: number }>()

/**
 * Logs an error that a single cause, such as a cluster outage, can repeat for every pod. Each combination of
 * message and cause is logged at most once every ten seconds. `repeated` is the number of suppressed lines.
 */
export function logRepeatable(
  log: Logger,
  level: 'warn' | 'error',
  { err, ...ids }: { err: unknown } & Record<string, unknown>,
  message: string,
  now = performance.now(),
): void {
  const key = `${level} ${message} ${causeOf(err)}`
  const known = causes.get(key)
  if (known && now - known.loggedAt < repeatMs) {
    known.repeated++
    return
  }
  if (causes.size >= maxCauses) causes.clear()
  causes.set(key, { loggedAt: now, repeated: 0 })
  log[level]({ err, ...ids, repeated: known?.repeated || undefined }, message)
}

/** Returns an error's message with its names, IDs and numbers replaced, because they differ between pods. */
const causeOf = (error: unknown): string =>
  (error instanceof Error ? `${error.name} ${error.message.split('\n')[0]}` : String(error)).replaceAll(
    /"[^"]*"|[\w.:-]*\d[\w.:-]*/g,
    '*',
  )
