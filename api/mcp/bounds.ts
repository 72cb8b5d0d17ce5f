/**
 * Validates MCP messages. Request IDs, methods, tool names and progress tokens must be short, because
 * responses and progress notifications repeat them.
 */
import { invalid } from '../errors/invalid.ts'

const maxNamed = 200

interface Message {
  [name: string]: unknown
  id?: unknown
  method?: unknown
  params?: { name?: unknown; _meta?: { progressToken?: unknown } }
}

/** @throws {Problem} `invalid_request` if a request id, method, tool name or progress token is too long */
export function assertShortNames(message: Message): void {
  const { id, method, params } = message
  const names = {
    id,
    method,
    'params.name': params?.name,
    'params._meta.progressToken': params?._meta?.progressToken,
  }
  for (const [path, value] of Object.entries(names)) {
    if (typeof value !== 'string' || value.length <= maxNamed) continue
    throw invalid({ path, message: `must have at most ${maxNamed} characters` })
  }
}

/**
 * Removes null values, which many clients send for absent parameters.
 * @throws {Problem} `invalid_request` if a parameter has a type that violates the protocol
 */
export function withoutNulls<M extends Message>(message: M): M {
  if (message.params === undefined) return message
  const { params: _, ...rest } = message
  if (message.params === null) return rest as M
  const params = presentIn(message.params, 'params')
  const types: Record<string, keyof typeof nouns> =
    message.method === 'tools/call' ? toolCall : /\/list$/.test(String(message.method)) ? page : {}
  for (const [name, type] of Object.entries(types)) {
    const value = params[name]
    if (value === undefined) continue
    const isValid = type === 'string' ? typeof value === 'string' : isObject(value)
    if (!isValid) throw invalid({ path: `params.${name}`, message: `must be ${nouns[type]}` })
  }
  if (message.method === 'tools/call' && params.name === undefined)
    throw invalid({ path: 'params.name', message: 'is required' })
  if (isObject(params.arguments)) params.arguments = presentIn(params.arguments, 'params.arguments')
  return { ...message, params }
}

const toolCall = { name: 'string', arguments: 'object', _meta: 'object' } as const
const page = { cursor: 'string', _meta: 'object' } as const
const nouns = { string: 'a string', object: 'an object' }

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function presentIn(value: unknown, path: string): Record<string, unknown> {
  if (!isObject(value)) throw invalid({ path, message: 'must be an object' })
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}
