/** `POST /v1/mcp`: a message goes out, messages come back. */

import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseJson } from '../../shared/contract/json.ts'
import { routes } from '../../shared/contract/routes.ts'
import { readEvents } from '../../shared/contract/server-sent-events.ts'
import { headOf, notSandlot, type Trace } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { explain, open, receive } from '../core/http.ts'
import { isProblem, problemToError } from '../core/problem.ts'
import type { Settings } from '../core/settings.ts'
import { version } from '../core/version.ts'
import { type Message, statelessVersion } from './messages.ts'

export interface Connection {
  /**
   * Sends a message and yields what comes back, as it comes.
   * @throws {CliError} in words, with the service's code where it answered with one
   */
  send(message: Message | Message[], signal: AbortSignal): AsyncGenerator<Message>
}

/** The service says something every 15 s while a tool runs. */
const silenceMs = 90_000
/** How often a stream that broke is taken up again with nothing new between, and how long before each time. */
const mostResumes = 5
const resumeAfterMs = 1_000

/** @param trace told of each request */
export function connect(settings: Settings, trace: Trace = () => {}): Connection {
  // What the answer to initialize said, for all that follows.
  let session: string | undefined
  let protocol: string | undefined

  const headersFor = (message: Message | Message[]) =>
    statelessHeaders(message) ?? {
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
      ...(protocol === undefined ? {} : { 'mcp-protocol-version': protocol }),
    }

  async function* ask(
    method: 'POST' | 'GET',
    more: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ) {
    const base = await settings.baseUrl()
    const url = new URL(`${base}${routes.callMcp.path}`)
    const headers = {
      accept: method === 'POST' ? 'application/json, text/event-stream' : 'text/event-stream',
      authorization: `Bearer ${await settings.apiKey(base)}`,
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': `sandlot-cli/${version}`,
      connection: 'close',
      ...more,
    }
    let reached = false
    const started = performance.now()
    const asked = () => ({ method, path: url.pathname, ms: performance.now() - started })
    try {
      const request = await open(url, { method, headers, signal })
      request.setTimeout(silenceMs, () => request.destroy(new Error(`silent for ${silenceMs / 1000} s`)))
      request.on('finish', () => {
        reached = true
      })
      const response = await receive(request, body)
      trace({ ...asked(), ...headOf(response) })
      const given = response.headers['mcp-session-id']
      if (typeof given === 'string') session = given
      yield* eventsIn(response, url)
    } catch (error) {
      if (error instanceof CliError || signal.aborted) throw error
      const problem = explain(error as NodeJS.ErrnoException, url, reached)
      trace({ ...asked(), problem: problem.message })
      throw problem
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
            ? ask('POST', more, JSON.stringify(message), signal)
            : ask('GET', { ...more, 'last-event-id': lastId }, '', signal)
        try {
          for await (const { id, data } of request) {
            if (id !== undefined && id !== lastId) [lastId, resumes] = [id, 0]
            // An event without data only tells where the stream can be taken up.
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
        if (resumes++ === mostResumes) return
        await sleep(resumeAfterMs, undefined, { signal })
      }
    },
  }
}

/** @returns undefined for a message of a version before 2026-07-28 */
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

/** As the protocol has it: what is no plain text goes as base64. */
const inHeader = (text: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

interface SentMessage {
  id?: string | undefined
  data?: Message
}

async function* eventsIn(response: IncomingMessage, url: URL): AsyncGenerator<SentMessage> {
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
  // A refusal in the words of the protocol, which name the request, is an answer.
  const isAnswer = status === 200 || ((value as Message | undefined)?.error && (value as Message).id != null)
  if (isAnswer && value !== undefined) {
    for (const data of [value].flat() as Message[]) yield { data }
    return
  }
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
