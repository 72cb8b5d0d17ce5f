/**
 * What a message to the tools may hold. Its names are said back, in progress again and again, so they are short; and it
 * may be as large as a request to the route behind its tool.
 */
import { limits } from '../../shared/contract/limits.ts'
import { type Tool, tools } from '../../shared/contract/mcp.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { invalid } from '../errors/invalid.ts'

/** Characters of an id, a method, the name of a tool, a progress token. */
const mostNamed = 200

interface Message {
  [name: string]: unknown
  id?: unknown
  method?: unknown
  params?: { name?: unknown; _meta?: { progressToken?: unknown } }
}

/** @throws {Problem} `invalid_request` for a name that is too long, `body_too_large` */
export function mustBeBounded(message: Message): void {
  const { id, method, params } = message
  const names = {
    id,
    method,
    'params.name': params?.name,
    'params._meta.progressToken': params?._meta?.progressToken,
  }
  for (const [path, value] of Object.entries(names)) {
    if (typeof value !== 'string' || value.length <= mostNamed) continue
    throw invalid({ path, message: `must have at most ${mostNamed} characters` })
  }
  const most = mostBytesOf(message)
  if (isLargerThan(most, message)) {
    const of = method === 'tools/call' ? `A call of ${params?.name}` : 'This message'
    throw new Problem('body_too_large', `${of} may have at most ${most} bytes.`)
  }
}

function mostBytesOf({ method, params }: Message): number {
  const name = method === 'tools/call' ? String(params?.name) : ''
  const tool: Tool | undefined = Object.hasOwn(tools, name) ? tools[name as keyof typeof tools] : undefined
  return tool?.endpoint.bodyBytes ?? limits.usualBodyBytes
}

/**
 * Removes members of `params` that are null, and arguments of a tool that are: many clients send null for a value that
 * is absent. `mustBeBounded` has checked the message's names.
 * @throws {Problem} `invalid_request` for parameters of another type than the protocol has
 */
export function withoutNulls<M extends Message>(message: M): M {
  if (message.params === undefined) return message
  const { params: _, ...rest } = message
  if (message.params === null) return rest as M
  const params = presentIn(message.params, 'params')
  const types =
    message.method === 'tools/call' ? toolCall : /\/list$/.test(String(message.method)) ? page : {}
  for (const [name, type] of Object.entries(types)) {
    const value = params[name]
    if (value === undefined) continue
    const isRight = type === 'string' ? typeof value === 'string' : isObject(value)
    if (!isRight)
      throw invalid({
        path: `params.${name}`,
        message: `must be ${type === 'string' ? 'a string' : 'an object'}`,
      })
  }
  if (message.method === 'tools/call' && params.name === undefined)
    throw invalid({ path: 'params.name', message: 'is required' })
  if (isObject(params.arguments)) params.arguments = presentIn(params.arguments, 'params.arguments')
  return { ...message, params }
}

const toolCall = { name: 'string', arguments: 'object', _meta: 'object' } as const
const page = { cursor: 'string', _meta: 'object' } as const

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function presentIn(value: unknown, path: string): Record<string, unknown> {
  if (!isObject(value)) throw invalid({ path, message: 'must be an object' })
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

/** Counts the texts, names and values of a message; it is not made into JSON again. */
function isLargerThan(most: number, message: object): boolean {
  let count = 0
  const open: unknown[] = [message]
  while (open.length > 0 && count <= most) {
    const at = open.pop()
    if (typeof at === 'string') count += at.length
    else if (typeof at === 'object' && at !== null) {
      for (const name of Array.isArray(at) ? [] : Object.keys(at)) count += name.length
      open.push(...Object.values(at))
    }
    // A value takes at least a character, and one that separates it.
    count += 2
  }
  return count > most
}
