import { exec as contract } from '../../shared/contract/exec.ts'
import { listExecs as listRows } from '../../shared/data/execs.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { assertAllowed, countRefused } from '../exec/allowlist.ts'
import { findExitStatus, preferRow, withoutOutput } from '../exec/exit-status.ts'
import {
  findPids,
  loadExec,
  loadExecInRunningSandbox,
  marginMs,
  summarize,
  unlessForgotten,
} from '../exec/load-exec.ts'
import { followOne, runToEvents, runToResult } from '../exec/start.ts'
import { prefersEvents } from '../http/accept.ts'
import { takePage } from '../http/page.ts'
import { answered, JsonReply, route, StreamReply } from '../http/route.ts'
import { requireUpgrade } from '../http/websocket.ts'
import { awaitRunning, loadSandbox } from '../sandboxes/load-sandbox.ts'
import { reportLost } from '../worker-client/client.ts'
import { join } from '../worker-client/tunnel.ts'

export const execCommand = route(
  contract.execCommand,
  async ({ account, params, body, headers, requestId, signal }, app) => {
    const sandbox = { accountId: account.id, sandboxId: params.id }
    const { leftMs } = await awaitRunning(app, { ...sandbox, signal })
    // While the request waited for its sandbox, the key may have been revoked or the allowlist changed.
    const caller = await account.again()
    await assertAllowed(app, caller, body)
    const key = headers['idempotency-key']
    const isListed = caller.allowlist !== null
    const start = { ...sandbox, requestId, request: body, isListed, key, leftMs, signal }
    const isBackground = body.background || body.tty
    const count = countRefused(app, account)
    if (!isBackground && prefersEvents(headers.accept)) return runToEvents(app, start).catch(count)
    const result = await runToResult(app, start, isBackground ? 'background' : 'json').catch(count)
    if (result.status !== 'running') return result
    const Location = `/v1/sandboxes/${params.id}/exec/${result.id}`
    return new JsonReply(result, { status: 202, headers: { Location } })
  },
)

export const listExecs = route(
  contract.listExecs,
  async ({ account, params, query: { limit, cursor }, requestId, signal }, app) => {
    const { db } = app.context
    const ids = { accountId: account.id, requestId }
    const sandbox = await loadSandbox(db, account.id, params.id)
    const rows = await listRows(db, { sandboxId: sandbox.id, limit: limit + 1, before: cursor ?? null })
    const { data, next_cursor } = takePage(rows, limit)
    const summaries = await Promise.all(data.map((row) => summarize(app, row, sandbox, ids)))
    const pids = await findPids(app, data, sandbox, { ...ids, signal })
    return {
      data: summaries.map((exec) => ({ ...exec, pid: exec.pid ?? pids[exec.id] ?? null })),
      next_cursor,
    }
  },
)

export const getExec = route(contract.getExec, async (call, app) => {
  const { sandbox, row, args, options } = await loadExec(app, call)
  // The output of a command is deleted with its sandbox.
  const asked = sandbox.destroyed_at
    ? undefined
    : app.workers.call('getExec', { ...args, wait: false }, options)
  const found = asked && (await unlessForgotten(asked).catch(reportUnresponsive('Try again.')))
  if (found) return preferRow(found, row)
  return withoutOutput(await findExitStatus(app, row, sandbox, args))
})

export const streamExec = route(contract.streamExec, async (call, app) => {
  const { row, args, options } = await loadExecInRunningSandbox(app, call)
  const lastEventId = call.headers['last-event-id']
  return followOne(app, args, { ...options, startedAt: row.started_at, lastEventId })
})

export const writeExecStdin = route(contract.writeExecStdin, async (call, app) => {
  const { args, options, leftMs } = await loadExecInRunningSandbox(app, call)
  const { offset, eof } = call.query
  // The request blocks while the command reads slowly.
  const upload = { ...options, timeoutMs: leftMs + marginMs, upload: call.request }
  const written = app.workers
    .stream('writeStdin', { ...args, offset, eof: eof === 'true' }, upload)
    .catch(reportUnresponsive("Send an empty body to get the command's current stdin offset."))
  return new StreamReply((await unlessForgotten(written)) ?? refuse('exec_finished', over))
})

export const readExecOutput = route(contract.readExecOutput, async (call, app) => {
  const { args, options } = await loadExecInRunningSandbox(app, call)
  const { method, headers } = call.request
  // Only GET supports ranges. Output has no ETag, so If-Range never matches.
  const range = method === 'GET' && headers['if-range'] === undefined ? call.headers.range : undefined
  const read = app.workers
    .stream('readOutput', { ...args, stream: call.query.stream, range }, options)
    .catch(reportUnresponsive('Try again.'))
  return new StreamReply(
    (await unlessForgotten(read)) ??
      refuse('exec_not_found', 'The output of this command is no longer retained.'),
  )
})

export const stopExec = route(contract.stopExec, async (call, app) => {
  const { row, args, options } = await loadExecInRunningSandbox(app, call)
  const stopped = app.workers
    .call('stopExec', { ...args, signal: call.query.signal }, options)
    .catch(
      reportUnresponsive(
        'The signal may not have been delivered. To see whether the command is still running, retrieve its status.',
      ),
    )
  return preferRow((await unlessForgotten(stopped)) ?? refuse('exec_finished', over), row)
})

export const attachExec = route(contract.attachExec, async (call, app) => {
  const upgrade = requireUpgrade(call)
  const { args, options } = await loadExecInRunningSandbox(app, call)
  const opened = app.workers
    .attach(args, call.request.headers, options)
    .catch(reportUnresponsive('Try again.'))
  const tunnel = (await unlessForgotten(opened)) ?? refuse('exec_finished', over)
  join(upgrade, tunnel)
  return answered
})

const over = "The command has ended, or its worker was lost. To see which, retrieve the command's status."

function refuse(code: 'exec_finished' | 'exec_not_found', detail: string): never {
  throw new Problem(code, detail)
}

const reportUnresponsive = (advice: string) =>
  reportLost(`The worker that runs this command is not responding. ${advice}`)
