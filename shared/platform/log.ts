/**
 * Structured logs. Nothing of a command, an environment or a credential is ever logged: callers pass ids and figures,
 * and the route's pattern instead of a URL.
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
    // A last line of defence: no caller passes these.
    redact: ['authorization', 'password', 'env', 'stdin', 'command'].flatMap((name) => [name, `*.${name}`]),
  })
}

/** Database drivers attach parameters to errors, so only known fields are logged. */
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
