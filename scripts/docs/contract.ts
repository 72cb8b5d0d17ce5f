/** Generates tables in docs/http-api.md and docs/agents.md, and the client's route table. */
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { errors } from '../../shared/contract/errors.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { tools as declared } from '../../shared/contract/mcp.ts'
import { code, plain, table } from './table.ts'

export const routes = (): string =>
  table(
    ['route', 'description', 'credential', 'rate limit'],
    Object.values(endpoints).map((endpoint) => [
      code(`${endpoint.method} ${endpoint.path}`),
      plain(endpoint.summary),
      credentialOf(endpoint),
      code(endpoint.bucket),
    ]),
  )

function credentialOf({ credential, scope }: Endpoint): string {
  if (credential === 'none') return 'none'
  if (credential === 'token') return 'session token'
  return scope === 'full' ? 'API key, scope `full`' : 'API key'
}

export const errorCodes = (): string =>
  table(
    ['status', 'code', 'meaning'],
    Object.entries(errors).map(([name, { status, title }]) => [String(status), code(name), title]),
  )

export const tools = (): string =>
  table(
    ['tool', 'description', 'route'],
    Object.entries(declared).map(([name, { description, endpoint }]) => [
      code(name),
      plain(description),
      code(`${endpoint.method} ${endpoint.path}`),
    ]),
  )

const lineWidth = 110

export const withRoutes = (file: string): string => {
  const entries = Object.values(endpoints).map(({ name, method, path, credential, repeat }) => {
    const parts = Object.entries({ method, path, credential, repeat }).map(
      ([key, text]) => `${key}: '${text}'`,
    )
    const line = `  ${name}: { ${parts.join(', ')} },\n`
    return line.length <= lineWidth + 1
      ? line
      : `  ${name}: {\n${parts.map((part) => `    ${part},\n`).join('')}  },\n`
  })
  return file.replace(/(?<=export const routes = \{\n).*(?=\} as const)/s, entries.join(''))
}
