import type { Readable } from 'node:stream'
import { CliError } from '../core/errors.ts'

/** A JSON-RPC message, with the fields that this client reads. Other fields are forwarded unchanged. */
export interface Message {
  jsonrpc?: unknown
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

/** Returns the protocol version in a message. Messages contain it only since protocol version 2026-07-28. */
export function statelessVersion(message: Message | Message[]): string | undefined {
  const meta = Array.isArray(message) ? undefined : message.params?._meta
  const version = (meta as Record<string, unknown> | undefined)?.['io.modelcontextprotocol/protocolVersion']
  return typeof version === 'string' ? version : undefined
}

/** Splits a stream into lines. Does not use node:readline, which would also split at U+2028. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of stream) {
    const chunk = decoder.decode(bytes, { stream: true })
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop()!
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
  if (rest !== '') yield rest
}

/** Returns the ids of the requests, each of which needs a response. */
export const requestsIn = (sent: Message | Message[]): (string | number)[] =>
  [sent]
    .flat()
    .filter(({ method }) => method !== undefined)
    .flatMap(({ id }) => (id === undefined || id === null ? [] : [id]))

/** Returns a JSON-RPC error response. The default code, -32000, means a server error. */
export const failure = (id: string | number | null, error: unknown, code = -32_000): Message => {
  const { message, hint, ...more } =
    error instanceof CliError
      ? { message: error.message, hint: error.hint, code: error.code, ...error.details }
      : { message: `The client failed unexpectedly: ${(error as Error).message}`, hint: undefined }
  const words = [message, hint].filter((text) => text !== undefined).join(' ')
  return { jsonrpc: '2.0', id, error: { code, message: words, data: more } }
}
