/** Commands of every kind, each so that it can be told apart from all others. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecRequest } from '../../../shared/contract/exec.ts'
import { attempt, type CommandEntry, type Outcome } from '../ledger.ts'
import { between } from '../random.ts'
import { apiCount } from '../stage.ts'
import { anyApi, judge, type Lane, newCommand, newToken, timeoutMs, writesItself } from './lane.ts'

/** The refusal of one that certainly did not run. */
const isUndone = /Nothing was done|had no effect|sandbox (was|is) destroyed/i

/** Starts a command, or asks for it again under its key. @returns its result so far; undefined for a failure */
export async function run(lane: Lane, entry: CommandEntry, body: ExecRequest, api = anyApi(lane)) {
  entry.attempts++
  const { account, params, ledger } = lane
  const headers: Record<string, string> = entry.key ? { 'idempotency-key': entry.key } : {}
  const asked = { params, api, headers, body: { timeout_ms: timeoutMs, ...body } }
  const outcome = await attempt(ledger, `exec: ${entry.kind}`, (signal) =>
    account.call('execCommand', { ...asked, signal }),
  )
  noteRefusal(entry, outcome)
  if ('failed' in outcome) return undefined
  judge(lane, entry, outcome.ok.body)
  return outcome.ok.body
}

export function noteRefusal(entry: CommandEntry, outcome: Outcome<unknown>): void {
  if (!('failed' in outcome) || !outcome.refusal) return
  const { status, problem } = outcome.refusal
  if (status < 500 || isUndone.test(problem.detail ?? '')) entry.refusedAt.push(Date.now())
}

export async function foreground(lane: Lane): Promise<void> {
  const { entry, command } = says(lane, 'foreground')
  await run(lane, entry, { command })
}

export async function withStdin(lane: Lane): Promise<void> {
  const stdin = `${newToken()}\n`.repeat(between(lane.random, 1, 2_000))
  const entry = newCommand(lane, 'stdin', { exitCode: 3, stdout: stdin, stderr: '' })
  await run(lane, entry, { command: `${writesItself(entry)}; cat; exit 3`, stdin })
}

/** Asked for twice at once through both APIs, and again while no answer came. */
export async function withKey(lane: Lane): Promise<void> {
  const { entry, command } = says(lane, 'with a key', `key-${newToken()}`)
  for (let round = 0; round < 3; round++) {
    const asked = Array.from({ length: apiCount }, (_, api) => run(lane, entry, { command }, api))
    if ((await Promise.all(asked)).some((result) => result && result.status !== 'lost')) return
    await sleep(300)
  }
}

export async function inBackground(lane: Lane): Promise<void> {
  const { entry, command } = says(lane, 'background')
  const started = await run(lane, entry, { command, background: true })
  if (started) await awaitEnd(lane, entry, started.id)
}

/** Fed by requests of their own, each of which may have to be repeated from where its stdin stands. */
export async function fed(lane: Lane): Promise<void> {
  const pieces = Array.from({ length: between(lane.random, 1, 4) }, () => `${newToken()}\n`.repeat(50))
  const entry = newCommand(lane, 'fed', { exitCode: 5, stdout: pieces.join(''), stderr: '' })
  const started = await run(lane, entry, { command: `${writesItself(entry)}; cat; exit 5`, background: true })
  if (!started) return
  const all = Buffer.from(pieces.join(''))
  const params = { ...lane.params, exec_id: started.id }
  const write = (from: number, to: number, eof: boolean) =>
    attempt(lane.ledger, 'writeExecStdin', (signal) =>
      lane.account.call('writeExecStdin', {
        params,
        query: { offset: from, eof: eof ? 'true' : 'false' },
        bytes: new Uint8Array(all.subarray(from, to)),
        api: anyApi(lane),
        signal,
      }),
    )
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
  await awaitEnd(lane, entry, started.id)
}

/** Prints its token on both streams and ends with a status of its own, some only after a while. */
export function says(lane: Lane, kind: string, key?: string): { entry: CommandEntry; command: string } {
  const exitCode = between(lane.random, 0, 9)
  const entry = newCommand(lane, kind, { exitCode, stdout: '', stderr: '' }, { key })
  const { token } = entry
  entry.expected.stdout = `out ${token}\n`
  entry.expected.stderr = `err ${token}\n`
  const pause = lane.random() < 0.3 ? `sleep 0.${between(lane.random, 1, 9)}; ` : ''
  return {
    entry,
    command: `${writesItself(entry)}; ${pause}echo out ${token}; echo err ${token} >&2; exit ${exitCode}`,
  }
}

/** Asks until it is over. */
export async function awaitEnd(lane: Lane, entry: CommandEntry, execId: string): Promise<void> {
  const end = performance.now() + timeoutMs * 2
  while (performance.now() < end) {
    const params = { ...lane.params, exec_id: execId }
    const outcome = await attempt(lane.ledger, 'getExec', (signal) =>
      lane.account.call('getExec', { params, api: anyApi(lane), signal }),
    )
    if ('ok' in outcome && outcome.ok.body.status !== 'running') return judge(lane, entry, outcome.ok.body)
    if ('failed' in outcome && outcome.refusal && outcome.refusal.status < 500) return
    await sleep(200)
  }
}
