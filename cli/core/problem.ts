/** Converts the API's problem details (RFC 9457) to a CLI error with a hint. */
import type { Route } from '../../shared/contract/routes.ts'
import { CliError } from './errors.ts'
import { showSeconds } from './times.ts'

export const execIdHint = '`sandlot ps` lists the commands of a session.'

interface ProblemReply {
  type?: string
  status: number
  code: string
  title: string
  detail: string
  request_id: string
  errors?: { path: string; message: string }[]
  sandboxes?: unknown[]
  exec_id?: string
}

export const isProblem = (value: unknown): value is ProblemReply =>
  typeof value === 'object' &&
  value !== null &&
  'code' in value &&
  typeof value.code === 'string' &&
  'detail' in value &&
  typeof value.detail === 'string'

interface HttpExchange {
  route: Route
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
  status: number
  retryAfter: string | undefined
}

export function problemToError(problem: ProblemReply, exchanged: HttpExchange): CliError {
  const { route, status, retryAfter } = exchanged
  const { code, title: _, detail: __, type: ___, ...members } = problem
  const seconds = retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
  return new CliError(code, messageFor(problem, exchanged), {
    hint: hintFor(problem, route, seconds),
    details: { ...members, status, ...(seconds !== undefined && { retry_after: seconds }) },
  })
}

function messageFor({ code, detail, errors = [] }: ProblemReply, exchanged: HttpExchange): string {
  const { route, params = {} } = exchanged
  if (code === 'not_found' && route.path.startsWith('/v1/sandboxes/:id'))
    return `Session ${params.id} was not found.`
  if (code === 'not_found' && route.path.startsWith('/v1/api-keys/:key_id'))
    return `API key ${params.key_id} was not found.`
  const text = inClientTerms(detail)
  const path = errors.length === 0 ? pathIn(exchanged) : undefined
  // `detail` already includes a single field error.
  const fields = errors.filter(({ message }) => !detail.includes(message))
  return [
    path === undefined ? text : `${path}: ${text}`,
    ...fields.map(({ path, message }) => `  ${path || 'the body'}: ${message}`),
  ].join('\n')
}

function pathIn({ route, query, body }: HttpExchange): string | undefined {
  if (!route.path.includes('/files/')) return undefined
  const path = query?.path ?? (body as { path?: unknown } | undefined)?.path
  return typeof path === 'string' ? path : undefined
}

/** API terms in the service's messages, and their equivalents in this client. */
const clientTerms: [RegExp, string][] = [
  [/ [^.]*\boverwrite: true\b[^.]*\./, ''],
  [/\bSend exist_ok: true\b/, 'Pass --exist-ok'],
  [/\bSend recursive: true\b/, 'Pass --recursive'],
  [/ [^.]*\breplace_all\b[^.]*\./, ' Include more of the surrounding text, or use --all.'],
  [/\bif_match\b/, '--if-match'],
  [/\bfiles\/raw\b/, '`sandlot files get` or `sandlot files put`'],
]

const inClientTerms = (detail: string): string =>
  clientTerms.reduce((text, [theirs, ours]) => text.replace(theirs, ours), detail)

function hintFor(problem: ProblemReply, route: Route, seconds: number | undefined): string | undefined {
  const later = seconds === undefined ? 'Try again later.' : `Try again in ${showSeconds(seconds)}.`
  switch (problem.code) {
    case 'missing_credentials':
    case 'invalid_credentials':
    case 'wrong_credential_type':
      if (route.credential !== 'key') return 'Check the email address and the password.'
      return '`sandlot config show` shows which key was sent. `sandlot login` creates and saves a new key.'
    case 'scope_not_allowed':
      return '`sandlot keys create --scope full` creates a key with this permission.'
    case 'api_key_limit_reached':
      return '`sandlot keys ls` shows when each key was last used. `sandlot keys rm` revokes a key.'
    case 'not_found':
      if (route.path.startsWith('/v1/sandboxes/:id')) return '`sandlot session ls` lists the active sessions.'
      if (route.path.startsWith('/v1/api-keys/')) return '`sandlot keys ls` lists the API keys.'
      return undefined
    case 'exec_not_found':
      return execIdHint
    case 'sandbox_destroyed':
      return '`sandlot session create` creates a new session.'
    case 'sandbox_exhausted':
      return '`sandlot session reset` ends all processes and keeps the files. `sandlot session rm` destroys the session.'
    case 'sandbox_starting':
      return 'Try again in a moment. `sandlot session get` shows whether the session is ready.'
    case 'file_exists':
      return route.method === 'PUT' ? 'To replace the file, omit --no-overwrite.' : undefined
    case 'concurrent_sandbox_limit_reached':
      return `Active sessions: ${namesOf(problem.sandboxes)}. \`sandlot session rm\` destroys a session.`
    case 'monthly_usage_limit_reached':
      return `\`sandlot whoami\` shows the usage. ${later}`
    case 'unavailable':
      if (problem.exec_id) return `The id of the command is ${problem.exec_id}. ${execIdHint}`
      return problem.detail.includes('Try again in') ? undefined : later
    case 'rate_limited':
      return problem.detail.includes('Try again in') ? undefined : later
  }
  return undefined
}

function namesOf(sandboxes: unknown[] | undefined): string {
  const ids = (sandboxes ?? []).map((item) =>
    typeof item === 'object' && item !== null && 'id' in item ? String(item.id) : String(item),
  )
  return ids.join(', ') || 'unknown'
}
