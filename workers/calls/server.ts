/** Where a worker takes the API's calls: on its internal server, from whoever holds the credential. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import {
  type CallName,
  type CallProblem,
  type Calls,
  callPath,
  makeCallTokenCheck,
} from '../../shared/calls.ts'
import type { Context } from '../../shared/context.ts'
import { answer } from '../../shared/internal-server.ts'
import { meansAway, Problem, unavailable } from '../../shared/problem.ts'
import type { WorkerContext } from '../context.ts'
import type { Call } from './call.ts'
import { createFile } from './create-file.ts'
import { exec } from './exec.ts'
import { viewFile } from './view-file.ts'

const calls: { [N in CallName]: Call<N> } = { exec, viewFile, createFile }

export interface CallServer {
  /** Refuses calls until then: the worker is not yet whole. */
  open(worker: WorkerContext): void
  /** Takes no more calls and resolves when those that run have ended, at the latest after `ms`. */
  drain(ms: number): Promise<void>
}

export function serveCalls(server: Server, context: Context): CallServer {
  const isFromApi = makeCallTokenCheck(context.settings.secretsKeys)
  const running = new Set<Promise<void>>()
  let worker: WorkerContext | undefined

  // The API sends the body only after this side has said that it is there.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    const name = (Object.keys(calls) as CallName[]).find((candidate) => callPath(candidate) === request.url)
    if (!isFromApi(request.headers.authorization))
      return answer(response, 401, problemOf(new Error('not the API')))
    if (!name || !worker) return answer(response, 503, problemOf(unavailable('This worker takes no calls.')))
    response.writeContinue()
    const work = takeCall(name, worker, request, response)
    running.add(work)
    void work.finally(() => running.delete(work))
  })

  return {
    open(opened) {
      worker = opened
    },
    async drain(ms) {
      worker = undefined
      const late = new Promise((resolve) => setTimeout(resolve, ms).unref())
      await Promise.race([Promise.allSettled(running), late])
    },
  }
}

async function takeCall(
  name: CallName,
  worker: WorkerContext,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const hungUp = new AbortController()
  response.on('close', () => hungUp.abort())
  try {
    const args = (await json(request)) as Calls[CallName]['args']
    if (hungUp.signal.aborted) return
    const result = await (calls[name] as Call<CallName>)(args as never, worker, hungUp.signal)
    if (!hungUp.signal.aborted) answer(response, 200, result)
  } catch (error) {
    if (hungUp.signal.aborted) return
    const problem = error instanceof Problem ? error : undefined
    if (!problem && !meansAway(error)) worker.log.error({ err: error, call: name }, 'a call failed')
    answer(response, problem?.status ?? 503, problemOf(error))
  }
}

function problemOf(error: unknown): CallProblem {
  const problem =
    error instanceof Problem
      ? error
      : meansAway(error)
        ? unavailable('A part of the service is away. Try again.')
        : new Problem('internal_error', 'Something went wrong in a worker.')
  return {
    code: problem.code,
    detail: problem.message,
    members: problem.members,
    ...(problem.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: problem.retryAfterSeconds }),
  }
}
