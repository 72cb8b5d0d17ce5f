/** Commands of every kind. Each one prints or receives a unique token. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecRequest } from '../../../shared/contract/exec.ts'
import { between } from '../random.ts'
import { attempt, type CommandEntry, type Outcome } from '../recorder.ts'
import { apiCount } from '../stage.ts'
import {
  anyApi,
  checkResult,
  type Lane,
  newCommand,
  newToken,
  recordsStart,
  send,
  timeoutMs,
} from './lane.ts'

/** Matches errors that state that the command did not run. */
const didNotRun = /Nothing was done|had no effect|sandbox (was|is) destroyed/i

/** Starts a command or repeats a request. @returns the result so far, or undefined after a failure */
export async function run(lane: Lane, entry: CommandEntry, body: ExecRequest, api = anyApi(lane)) {
  entry.attempts++
  const { account, params, recorder } = lane
  const headers: Record<string, string> = entry.key ? { 'idempotency-key': entry.key } : {}
  const options = { params, api, headers, body: { timeout_ms: timeoutMs, ...body } }
  const outcome = await attempt(recorder, `exec: ${entry.kind}`, (signal) =>
    account.call('execCommand', { ...options, signal }),
  )
  recordRefusal(entry, outcome)
  if ('failed' in outcome) return undefined
  checkResult(lane, entry, outcome.ok.body)
  return outcome.ok.body
}

export function recordRefusal(entry: CommandEntry, outcome: Outcome<unknown>): void {
  if (!('failed' in outcome) || !outcome.refusal) return
  const { status, problem } = outcome.refusal
  if (status < 500 || didNotRun.test(problem.detail ?? '')) entry.refusedAt.push(Date.now())
}

export async function foreground(lane: Lane): Promise<void> {
  const { entry, command } = echoesToken(lane, 'foreground')
  await run(lane, entry, { command })
}

export async function withStdin(lane: Lane): Promise<void> {
  const stdin = `${newToken()}\n`.repeat(between(lane.random, 1, 2_000))
  const entry = newCommand(lane, 'stdin', { exitCode: 3, stdout: stdin, stderr: '' })
  await run(lane, entry, { command: `${recordsStart(entry)}; cat; exit 3`, stdin })
}

/** Sends the same request to both APIs concurrently, until one succeeds. */
export async function withKey(lane: Lane): Promise<void> {
  const { entry, command } = echoesToken(lane, 'with a key', `key-${newToken()}`)
  for (let round = 0; round < 3; round++) {
    const requests = Array.from({ length: apiCount }, (_, api) => run(lane, entry, { command }, api))
    if ((await Promise.all(requests)).some((result) => result && result.status !== 'lost')) return
    await sleep(300)
  }
}

export async function inBackground(lane: Lane): Promise<void> {
  const { entry, command } = echoesToken(lane, 'background')
  const started = await run(lane, entry, { command, background: true })
  if (started) await waitForExit(lane, entry, started.id)
}

/** Sends stdin in several requests. After a failure, it continues at the offset from the API. */
export async function fed(lane: Lane): Promise<void> {
  const pieces = Array.from({ length: between(lane.random, 1, 4) }, () => `${newToken()}\n`.repeat(50))
  const entry = newCommand(lane, 'fed', { exitCode: 5, stdout: pieces.join(''), stderr: '' })
  const started = await run(lane, entry, { command: `${recordsStart(entry)}; cat; exit 5`, background: true })
  if (!started) return
  const all = Buffer.from(pieces.join(''))
  const params = { ...lane.params, exec_id: started.id }
  const write = (from: number, to: number, eof: boolean) =>
    send(lane, 'writeExecStdin', {
      params,
      query: { offset: from, eof: eof ? 'true' : 'false' },
      bytes: new Uint8Array(all.subarray(from, to)),
    })
  const size = all.length / pieces.length
  for (let at = 0, tried = 0; at < all.length && tried < 12; tried++) {
    const end = Math.min(all.length, Math.ceil((at + 1) / size) * size)
    const outcome = await write(at, end, end === all.length)
    if ('ok' in outcome) at = outcome.ok.body.offset
    else if (outcome.refusal?.code === 'stdin_offset_conflict')
      at = Number(outcome.refusal.problem.offset ?? at)
    else if (outcome.refusal && outcome.refusal.status < 500) break
    else await sleep(200)
  }
  await waitForExit(lane, entry, started.id)
}

/** A command that prints its token on both streams and exits with a random code. */
function echoesToken(lane: Lane, kind: string, key?: string): { entry: CommandEntry; command: string } {
  const exitCode = between(lane.random, 0, 9)
  const entry = newCommand(lane, kind, { exitCode, stdout: '', stderr: '' }, { key })
  const { token } = entry
  entry.expected.stdout = `out ${token}\n`
  entry.expected.stderr = `err ${token}\n`
  const pause = lane.random() < 0.3 ? `sleep 0.${between(lane.random, 1, 9)}; ` : ''
  return {
    entry,
    command: `${recordsStart(entry)}; ${pause}echo out ${token}; echo err ${token} >&2; exit ${exitCode}`,
  }
}

export async function waitForExit(lane: Lane, entry: CommandEntry, execId: string): Promise<void> {
  const end = performance.now() + timeoutMs * 2
  while (performance.now() < end) {
    const params = { ...lane.params, exec_id: execId }
    const outcome = await send(lane, 'getExec', { params })
    if ('ok' in outcome && outcome.ok.body.status !== 'running')
      return checkResult(lane, entry, outcome.ok.body)
    if ('failed' in outcome && outcome.refusal && outcome.refusal.status < 500) return
    await sleep(200)
  }
}
