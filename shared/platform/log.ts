/**
 * Structured logs. Commands, environments and credentials are never logged. Callers pass ids and numbers, and the
 * pattern of a route instead of a URL.
 */
import { type Logger as PinoLogger, pino } from 'pino'

export type Logger = PinoLogger

export function openLog(role: string, level: string): Logger {
  return pino({
    level,
    base: { role, pid: process.pid },
    formatters: { level: (label) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    // Defence in depth: no caller passes these.
    redact: ['authorization', 'password', 'env', 'stdin', 'command'].flatMap((name) => [name, `*.${name}`]),
  })
}

/** Logs only known fields, because database drivers attach parameters to errors. */
function describeError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, sqlState } = error as { code?: unknown; sqlState?: unknown }
  return {
    type: error.name,
    message: error.message.split('\n')[0],
    code: code ?? sqlState,
    stack: error.stack,
    cause: error.cause instanceof Error ? error.cause.message.split('\n')[0] : undefined,
  }
}
