import type { ExecRequest, execSignals } from '../../shared/contract/exec.ts'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Api, Reply } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'

export type Signal = (typeof execSignals)[number]
export type Remote = ReturnType<typeof createRemote>

/** Timeout for requests that may wait for a sandbox to start, in milliseconds. */
const startMs = limits.startingWaitMs + 30_000
/**
 * Timeout for a stdin request, in milliseconds. It exceeds any TTL, because a command may never read its
 * stdin.
 */
const feedMs = 25 * 60 * 60 * 1000
/** Default grace period, in milliseconds: how long a command keeps running without an attached client. */
export const graceMs = 10_000

const withGrace = (body: ExecRequest) => ({ ...body, grace_ms: body.grace_ms ?? graceMs })

export function createRemote(api: Api, id: string) {
  const one = (exec_id: string) => ({ id, exec_id })
  // A request retried with the same idempotency key attaches to the same command.
  const execRequest = (body: ExecRequest, timeoutMs = startMs) => ({
    params: { id },
    headers: { 'idempotency-key': crypto.randomUUID() },
    body,
    timeoutMs,
  })
  const launch = (body: ExecRequest): Promise<Reply<'execCommand'>> =>
    api.call('execCommand', execRequest({ ...body, background: true }))
  return {
    sessionId: id,
    run: (body: ExecRequest): Promise<Reply<'execCommand'>> =>
      api.call('execCommand', execRequest(body, (body.timeout_ms ?? limits.execTimeoutMs) + startMs)),
    /** Starts a command that keeps running without a client. */
    launch: ({ grace_ms: _, ...body }: ExecRequest) => launch(body),
    /** Starts a command that the service kills if no client is attached to it for its grace period. */
    launchFollowed: (body: ExecRequest) => launch(withGrace(body)),
    /**
     * Returns a function that starts the command and opens its event stream. Calling it again reopens the
     * stream.
     */
    streaming(body: ExecRequest): () => Promise<OpenExchange> {
      const request = execRequest(withGrace(body))
      const headers = { ...request.headers, accept: 'text/event-stream' }
      return () => api.open('execCommand', { ...request, headers })
    },
    follow: (execId: string, lastEventId?: string): Promise<OpenExchange> =>
      api.open('streamExec', {
        params: one(execId),
        headers: {
          accept: 'text/event-stream',
          ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
        },
        timeoutMs: startMs,
      }),
    async printedSoFar(execId: string): Promise<OutputOffset> {
      const lengths = [lengthOf(api, one(execId), 'stdout'), lengthOf(api, one(execId), 'stderr')] as const
      const [stdout, stderr] = await Promise.all(lengths)
      return { stdout, stderr }
    },
    get: (execId: string): Promise<Reply<'getExec'>> => api.call('getExec', { params: one(execId) }),
    feed: (execId: string, offset: number, bytes: AsyncIterable<Uint8Array>) =>
      api.call('writeExecStdin', { params: one(execId), query: { offset }, bytes, timeoutMs: feedMs }),
    endStdin: (execId: string, offset: number) =>
      api.call('writeExecStdin', { params: one(execId), query: { offset, eof: 'true' }, timeoutMs: feedMs }),
    signal: (execId: string, signal: Signal) =>
      api.call('stopExec', { params: one(execId), query: { signal } }),
    attach: (execId: string) => api.addressOf('attachExec', { params: one(execId) }),
  }
}

async function lengthOf(
  api: Api,
  params: { id: string; exec_id: string },
  stream: 'stdout' | 'stderr',
): Promise<number> {
  try {
    const headers = { range: 'bytes=-1' }
    const { response } = await api.open('readExecOutput', { params, query: { stream }, headers })
    response.destroy()
    return Number(/-(\d+)\//.exec(response.headers['content-range'] ?? '')?.[1]) + 1
  } catch (error) {
    // If the service no longer stores any of the stream, the error contains the stream's length.
    if (error instanceof CliError && error.code === 'range_not_satisfiable') return Number(error.details.end)
    throw error
  }
}
