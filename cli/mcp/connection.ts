import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseJson } from '../../shared/contract/json.ts'
import { routes } from '../../shared/contract/routes.ts'
import { readEvents } from '../../shared/contract/server-sent-events.ts'
import { type Api, notSandlot } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { explain, open, send } from '../core/http.ts'
import { isProblem, problemToError } from '../core/problem.ts'
import { type Message, statelessVersion } from './messages.ts'

export interface Connection {
  /**
   * Sends a message and yields the responses as they arrive.
   * @throws {CliError} with the service's error code, if any
   */
  send(message: Message | Message[], signal: AbortSignal): AsyncGenerator<Message>
}

/** Milliseconds without data before a request fails. While a tool runs, an event arrives every 15 s. */
const idleTimeoutMs = 90_000
/** Maximum number of consecutive attempts to resume a stream. A new event resets the count. */
const maxResumes = 5
const resumeAfterMs = 1_000

export function connect(api: Api): Connection {
  // Set by the response to `initialize`.
  let session: string | undefined
  let protocol: string | undefined

  const headersFor = (message: Message | Message[]) =>
    statelessHeaders(message) ?? {
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
      ...(protocol === undefined ? {} : { 'mcp-protocol-version': protocol }),
    }

  /**
   * Sends a request and yields the events of the response.
   * @param body a message, or undefined to resume a broken stream
   */
  async function* ask(body: string | undefined, more: Record<string, string>, signal: AbortSignal) {
    const [name, method] =
      body === undefined ? (['resumeMcp', 'GET'] as const) : (['callMcp', 'POST'] as const)
    const { url, headers, traced } = await api.addressOf(name, {
      headers: {
        accept: body === undefined ? 'text/event-stream' : 'application/json, text/event-stream',
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(body)),
        }),
        connection: 'close',
        ...more,
      },
    })
    let reached = false
    try {
      const response = await traced(async () => {
        const request = await open(url, { method, headers, signal })
        request.setTimeout(idleTimeoutMs, () =>
          request.destroy(new Error(`no data for ${idleTimeoutMs / 1000} s`)),
        )
        request.on('finish', () => {
          reached = true
        })
        return await send(request, body)
      })
      const given = response.headers['mcp-session-id']
      if (typeof given === 'string') session = given
      yield* eventsIn(response, url)
    } catch (error) {
      if (error instanceof CliError || signal.aborted) throw error
      throw explain(error as NodeJS.ErrnoException, url, reached)
    }
  }

  return {
    async *send(message, signal) {
      const more = headersFor(message)
      let lastId = ''
      let isAnswered = false
      for (let resumes = 0; ; ) {
        const request =
          lastId === ''
            ? ask(JSON.stringify(message), more, signal)
            : ask(undefined, { ...more, 'last-event-id': lastId }, signal)
        try {
          for await (const { id, data } of request) {
            if (id !== undefined && id !== lastId) [lastId, resumes] = [id, 0]
            // An event without data only provides an id for resuming.
            if (!data) continue
            const agreed = data.result?.protocolVersion
            if (typeof agreed === 'string') protocol = agreed
            isAnswered ||= data.method === undefined
            yield data
          }
          if (isAnswered || lastId === '') return
        } catch (error) {
          const isBroken = error instanceof CliError && error.code === 'network'
          if (signal.aborted || isAnswered || lastId === '' || !isBroken) throw error
        }
        if (resumes++ === maxResumes) return
        await sleep(resumeAfterMs, undefined, { signal })
      }
    },
  }
}

/**
 * Returns the headers that protocol version 2026-07-28 and later require, or undefined for earlier versions.
 */
function statelessHeaders(message: Message | Message[]): Record<string, string> | undefined {
  const version = statelessVersion(message)
  if (version === undefined || Array.isArray(message)) return undefined
  const { method = '', params = {} } = message
  const name = params.name ?? params.uri
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': inHeader(name) } : {}),
  }
}

/** Encodes text for a header. The protocol requires base64 for text that is not valid in a header. */
const inHeader = (text: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

async function* eventsIn(
  response: IncomingMessage,
  url: URL,
): AsyncGenerator<{ id?: string | undefined; data?: Message }> {
  const status = response.statusCode ?? 0
  const isStream = response.headers['content-type']?.startsWith('text/event-stream')
  if (status === 200 && isStream) {
    for await (const { id, data } of readEvents(response))
      yield data === '' ? { id } : { id, data: JSON.parse(data) }
    return
  }
  const body = await text(response)
  if (status === 202) return
  const value = parseJson(body)
  // A JSON-RPC error with the id of a request is a response, regardless of the HTTP status.
  const isAnswer = status === 200 || ((value as Message | undefined)?.error && (value as Message).id != null)
  if (isAnswer && value !== undefined) {
    for (const data of [value].flat() as Message[]) yield { data }
    return
  }
  throw refusal(status, response.headers['retry-after'], value, url)
}

function refusal(status: number, retryAfter: string | undefined, value: unknown, { origin }: URL): CliError {
  if (isProblem(value)) return problemToError(value, { route: routes.callMcp, status, retryAfter })
  const { error } = (value ?? {}) as Message
  if (error) return new CliError('unexpected_answer', error.message, { details: { status } })
  return notSandlot(origin, status)
}
