/** `POST /v1/mcp`: a message goes out, messages come back. */

import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { routes } from '../../shared/contract/routes.ts'
import { readEvents } from '../../shared/contract/server-sent-events.ts'
import { headOf, notSandlot, parseJson, type Trace } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { explain, open, receive } from '../core/http.ts'
import { isProblem, problemToError } from '../core/problem.ts'
import type { Settings } from '../core/settings.ts'
import { version } from '../core/version.ts'
import type { Message } from './messages.ts'

export interface Connection {
  /**
   * Sends a message and yields what comes back, as it comes.
   * @throws {CliError} in words, with the service's code where it answered with one
   */
  send(message: Message | Message[], signal: AbortSignal): AsyncGenerator<Message>
}

/** The service says something every 15 s while a tool runs. */
const silenceMs = 90_000

/** @param trace told of each request */
export function connect(settings: Settings, trace: Trace = () => {}): Connection {
  // What the answer to initialize said, for all that follows.
  let session: string | undefined
  let protocol: string | undefined

  return {
    async *send(message, signal) {
      const base = await settings.baseUrl()
      const url = new URL(`${base}${routes.callMcp.path}`)
      const body = JSON.stringify(message)
      const headers = {
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${await settings.apiKey(base)}`,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        'user-agent': `sandlot-cli/${version}`,
        connection: 'close',
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
        ...(protocol === undefined ? {} : { 'mcp-protocol-version': protocol }),
      }
      let reached = false
      const started = performance.now()
      const asked = () => ({ method: 'POST', path: url.pathname, ms: performance.now() - started })
      try {
        const request = await open(url, { method: 'POST', headers, signal })
        request.setTimeout(silenceMs, () => request.destroy(new Error(`silent for ${silenceMs / 1000} s`)))
        request.on('finish', () => {
          reached = true
        })
        const response = await receive(request, body)
        trace({ ...asked(), ...headOf(response) })
        const given = response.headers['mcp-session-id']
        if (typeof given === 'string') session = given
        for await (const answer of answersIn(response, url)) {
          const agreed = answer.result?.protocolVersion
          if (typeof agreed === 'string') protocol = agreed
          yield answer
        }
      } catch (error) {
        if (error instanceof CliError || signal.aborted) throw error
        const problem = explain(error as NodeJS.ErrnoException, url, reached)
        trace({ ...asked(), problem: problem.message })
        throw problem
      }
    },
  }
}

async function* answersIn(response: IncomingMessage, url: URL): AsyncGenerator<Message> {
  const status = response.statusCode ?? 0
  const isStream = response.headers['content-type']?.startsWith('text/event-stream')
  if (status === 200 && isStream) {
    for await (const { data } of readEvents(response)) yield JSON.parse(data)
    return
  }
  const body = await text(response)
  if (status === 202) return
  const value = parseJson(body)
  if (status === 200 && value !== undefined) return yield* [value].flat() as Message[]
  throw refusal(status, response.headers['retry-after'], value, url)
}

function refusal(status: number, retryAfter: string | undefined, value: unknown, { origin }: URL): CliError {
  if (isProblem(value)) {
    return problemToError(value, { route: routes.callMcp, status, retryAfter })
  }
  const { error } = (value ?? {}) as Message
  if (error) return new CliError('unexpected_answer', error.message, { details: { status } })
  return notSandlot(origin, status)
}
