import { type ExecResult, execCommand } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newExecId } from '../../shared/ids.ts'
import type { App } from '../app.ts'
import { route } from '../route.ts'
import { running } from '../running-sandbox.ts'
import { CallLost } from '../workers.ts'

/** Over the command's own time: to be handed over, to start, to be killed, to send its output. */
const marginMs = 20_000

export const exec = (app: App) => [
  route(execCommand, async ({ account, params, body, requestId, signal }) => {
    const sandbox = { accountId: account.id, sandboxId: params.id }
    const { leftMs } = await running(app, { ...sandbox, signal })
    const timeout_ms = Math.min(body.timeout_ms ?? limits.execTimeoutMs, leftMs)
    const execId = newExecId()
    const startedAt = new Date()
    const args = { ...sandbox, requestId, execId, request: { ...body, timeout_ms } }
    try {
      return await app.workers.call('exec', args, { signal, timeoutMs: timeout_ms + marginMs })
    } catch (error) {
      if (error instanceof CallLost) return lost(execId, startedAt)
      throw error
    }
  }),
]

/** Handed over, then silence: whether and how the command ended is not known, so nothing is claimed. */
const lost = (id: string, startedAt: Date): ExecResult => ({
  id,
  status: 'lost',
  exit_code: null,
  signal: null,
  stdout: '',
  stderr: '',
  stdout_bytes: 0,
  stderr_bytes: 0,
  truncated: false,
  started_at: startedAt.toISOString(),
  duration_ms: Date.now() - startedAt.getTime(),
})
