import { type ErrorCode, errors } from '../../shared/contract/errors.ts'

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  missing: 3,
  credentials: 4,
  conflict: 5,
  quota: 6,
  rateLimit: 7,
  service: 8,
  more: 9,
  execTimedOut: 124,
  execFailed: 125,
  interrupted: 130,
} as const

/** Exit codes for errors that the client itself reports. */
const clientCodes = {
  usage: exitCodes.usage,
  address_refused: exitCodes.usage,
  settings_broken: exitCodes.usage,
  no_address: exitCodes.usage,
  no_profile: exitCodes.usage,
  no_api_key: exitCodes.credentials,
  no_session: exitCodes.missing,
  several_sessions: exitCodes.conflict,
  several_keys: exitCodes.conflict,
  several_commands: exitCodes.conflict,
  network: exitCodes.service,
  redirected: exitCodes.service,
  unexpected_answer: exitCodes.service,
  output_failed: exitCodes.failed,
  command_lost: exitCodes.service,
  interrupted: exitCodes.interrupted,
  failed: exitCodes.failed,
} as const

/** Exit codes by HTTP status. They also apply to API error codes that this client does not know. */
const statusCodes: Record<number, number> = {
  400: exitCodes.usage,
  401: exitCodes.credentials,
  403: exitCodes.credentials,
  404: exitCodes.missing,
  409: exitCodes.conflict,
  410: exitCodes.missing,
  412: exitCodes.conflict,
  429: exitCodes.rateLimit,
}

/** API error codes with an exit code other than the default for their HTTP status. */
const exceptions: Partial<Record<ErrorCode, number>> = {
  command_not_allowed: exitCodes.failed,
  permission_denied: exitCodes.failed,
  read_only: exitCodes.failed,
  disk_full: exitCodes.failed,
  sandbox_exhausted: exitCodes.failed,
  host_not_allowed: exitCodes.usage,
  body_too_large: exitCodes.usage,
  request_timeout: exitCodes.service,
  api_key_limit_reached: exitCodes.quota,
  concurrent_sandbox_limit_reached: exitCodes.quota,
  monthly_usage_limit_reached: exitCodes.quota,
}

interface Extras {
  hint?: string | undefined
  details?: Record<string, unknown> | undefined
  exitCode?: number | undefined
}

export class CliError extends Error {
  override name = 'CliError'
  readonly code: string
  readonly exitCode: number
  readonly hint: string | undefined
  readonly details: Record<string, unknown>

  constructor(code: keyof typeof clientCodes | (string & {}), message: string, extras: Extras = {}) {
    super(message)
    this.code = code
    this.exitCode = extras.exitCode ?? exitCodeFor(code, Number(extras.details?.status))
    this.hint = extras.hint
    this.details = extras.details ?? {}
  }

  with({ message = this.message, ...extras }: Extras & { message?: string }): CliError {
    const { code, hint, details, exitCode } = this
    return new CliError(code, message, { hint, details, exitCode, ...extras })
  }
}

export const largeHint = 'Use `sandlot files put` or `sandlot cp` for files of any size.'

export function describeError(error: unknown): CliError {
  if (error instanceof CliError) return error
  const message = error instanceof Error ? error.message : error
  return new CliError('failed', `The client failed unexpectedly: ${message}`)
}

/** Returns a copy of an error, with context (`story`) before its message and `hint` before its hint. */
export const addStory = (error: CliError, story: string, hint: string): CliError =>
  addHint(error, hint, `${story} ${error.message}`)

export const addHint = (error: CliError, hint: string, message = error.message): CliError =>
  error.with({ message, hint: error.hint === undefined ? hint : `${hint}\n${error.hint}` })

function exitCodeFor(code: string, replyStatus: number): number {
  if (Object.hasOwn(clientCodes, code)) return clientCodes[code as keyof typeof clientCodes]
  const isKnown = Object.hasOwn(errors, code)
  const status = isKnown ? errors[code as ErrorCode].status : replyStatus
  const exception = isKnown ? exceptions[code as ErrorCode] : undefined
  return exception ?? statusCodes[status] ?? (status >= 500 ? exitCodes.service : exitCodes.failed)
}
