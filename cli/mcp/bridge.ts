import type { Readable } from 'node:stream'
import { parseJson } from '../../shared/contract/json.ts'
import { CliError } from '../core/errors.ts'
import type { Connection } from './connection.ts'
import { failure, linesOf, type Message, requestsIn, statelessVersion } from './messages.ts'

const parseError = -32_700

/** Forwards MCP messages to and from the service until `input` ends and every request has a response. */
export async function bridge(
  connection: Connection,
  input: Readable,
  write: (line: string) => void,
): Promise<void> {
  const running = new Map<string | number, Running>()
  const pending = new Set<Promise<void>>()
  const send = (message: Message) => write(`${JSON.stringify(message)}\n`)

  async function forward(message: Message | Message[]): Promise<void> {
    const stop = new AbortController()
    const unanswered = new Set(requestsIn(message))
    const one = { stop, isStateless: statelessVersion(message) !== undefined, isCancelled: false }
    for (const id of unanswered) running.set(id, one)
    try {
      for await (const answer of connection.send(message, stop.signal)) {
        if (answer.method === undefined && answer.id !== undefined && answer.id !== null)
          unanswered.delete(answer.id)
        send(answer)
      }
      if (!one.isCancelled) failAll(unanswered, endedEarly())
    } catch (error) {
      // MCP allows no response to a cancelled request.
      if (!one.isCancelled) failAll(unanswered, error)
    } finally {
      for (const id of requestsIn(message)) running.delete(id)
    }
  }

  /**
   * Cancels a request by closing its connection. In protocol versions before 2026-07-28, that does not cancel
   * a request, so the MCP client's notification is forwarded first.
   */
  async function cancel(message: Message): Promise<void> {
    const one = running.get(message.params?.requestId as string)
    if (!one) return
    one.isCancelled = true
    if (!one.isStateless) await forward(message)
    one.stop.abort()
  }

  const failAll = (ids: Iterable<string | number>, error: unknown) => {
    for (const id of ids) send(failure(id, error))
  }

  for await (const line of linesOf(input)) {
    if (line.trim() === '') continue
    const message = parseJson(line)
    if (!isMessage(message)) {
      send(failure(null, new CliError('usage', 'A line on stdin is not a JSON-RPC message.'), parseError))
      continue
    }
    const work = isCancellation(message) ? cancel(message) : forward(message)
    pending.add(work)
    void work.finally(() => pending.delete(work))
  }
  await Promise.all(pending)
}

interface Running {
  stop: AbortController
  isStateless: boolean
  isCancelled: boolean
}

const isMessage = (value: unknown): value is Message | Message[] =>
  [value].flat().every((each) => typeof each === 'object' && each !== null && !Array.isArray(each))

const isCancellation = (message: Message | Message[]): message is Message =>
  !Array.isArray(message) && message.method === 'notifications/cancelled'

const endedEarly = () =>
  new CliError(
    'network',
    'The service closed the connection before replying. The outcome of the request is unknown.',
  )
