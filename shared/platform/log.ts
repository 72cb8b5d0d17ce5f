/**
 * Structured logs. Commands, environments and credentials are never logged. Callers log IDs, numbers, and route
 * patterns instead of URLs.
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
    // Defense in depth: no caller logs these fields.
    redact: ['authorization', 'password', 'env', 'stdin', 'command'].flatMap((name) => [name, `*.${name}`]),
  })
}

/** Returns the fields of an error that are safe to log. Database drivers attach query parameters to errors. */
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
