import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, type Readable } from 'node:stream'
import { parseJson } from '../../shared/contract/json.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Checks } from '../core/checks.ts'
import { CliError } from '../core/errors.ts'
import { version } from '../core/version.ts'
import { bridge } from './bridge.ts'
import type { Connection } from './connection.ts'
import { linesOf, type Message } from './messages.ts'

/** A connection to the MCP server to test. Each line in either direction is one JSON-RPC message. */
export interface Peer extends AsyncDisposable {
  write(line: string): void
  lines: AsyncIterable<string>
}

const replyTimeoutMs = 60_000

/** Starts a local MCP server. @throws {CliError} `failed` if the program cannot be started */
export async function startPeer(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<Peer> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
  await once(child, 'spawn').catch(({ message }) => {
    throw new CliError('failed', `${command} does not start: ${message}`)
  })
  // If the server exits, the missing response is reported instead.
  child.stdin.on('error', () => {})
  const ended = once(child, 'exit')
  return {
    write: (line) => child.stdin.write(line),
    lines: linesOf(child.stdout),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      child.kill()
      await ended
    },
  }
}

export function reachPeer(connection: Connection): Peer {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const ended = bridge(connection, input, (line) => output.write(line)).finally(() => output.end())
  return {
    write: (line) => input.write(line),
    lines: linesOf(output as Readable),
    async [Symbol.asyncDispose]() {
      input.end()
      await ended
    },
  }
}

/** Initializes the server, lists its tools and runs `true` in a session, as an MCP client would. */
export async function examine(peer: Peer, { check }: Checks): Promise<void> {
  const ask = asker(peer)
  const isServer = await check('initialize', async () => {
    const clientInfo = { name: 'sandlot-doctor', version }
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
    return `protocol version ${(await ask('initialize', params)).protocolVersion}`
  })
  if (!isServer) return
  peer.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  const hasTools = await check('tools/list', async () => {
    const { tools } = (await ask('tools/list', {})) as { tools: { name: string }[] }
    return `${tools.length} tools`
  })
  if (hasTools) await check('exec', () => runTrue(ask))
}

async function runTrue(ask: ReturnType<typeof asker>): Promise<string> {
  const call = async (name: string, args: object) => {
    const result = await ask('tools/call', { name, arguments: args })
    if (!result.isError) return result.structuredContent as Record<string, unknown>
    const [{ text }] = result.content as [{ text: string }]
    const { code, detail, next } = JSON.parse(text)
    throw new CliError(code, `${name}: ${detail}`, { hint: next })
  }
  const { data } = (await call('session_list', { state: 'active', limit: 1 })) as { data: { id: string }[] }
  const session_id = data[0]?.id ?? ((await call('session_create', {})).id as string)
  try {
    const { status, exit_code } = await call('exec', { session_id, command: ['true'] })
    if (exit_code !== 0) throw new CliError('failed', `true failed: ${status}`)
    return `true ran in ${data.length > 0 ? 'an active session' : 'a temporary session'}`
  } finally {
    if (data.length === 0) await call('session_destroy', { session_id })
  }
}

function asker(peer: Peer) {
  let lastId = 0
  const lines = peer.lines[Symbol.asyncIterator]()
  const resultOf = async (id: number, method: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new CliError('failed', `${method}: the server exited without a reply`)
      const answer = parse(value, method)
      if (answer.id !== id) continue
      if (answer.error) throw new CliError('failed', `${method}: ${answer.error.message}`)
      return answer.result ?? {}
    }
  }
  return async (method: string, params: object) => {
    const id = ++lastId
    peer.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return await withTimeout(replyTimeoutMs, resultOf(id, method), () => {
      throw new CliError('failed', `${method}: no reply within 60 s`)
    })
  }
}

function parse(line: string, method: string): Message {
  const message = parseJson(line)
  if (message !== undefined) return message as Message
  const start = line.slice(0, 100)
  throw new CliError('failed', `${method}: the server printed a line that is not JSON: ${start}`)
}
