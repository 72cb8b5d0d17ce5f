/** The state of a client that uses one sandbox. */
import type { EndpointName } from '../../../shared/contract/index.ts'
import type { Account, CallOptions } from '../../support/account.ts'
import { between, type Random } from '../random.ts'
import {
  attempt,
  type CommandEntry,
  type Recorder,
  type ReportedResult,
  type SandboxEntry,
} from '../recorder.ts'
import { apiCount } from '../stage.ts'

export interface Lane {
  recorder: Recorder
  account: Account
  url: (api: number) => string
  sandbox: SandboxEntry
  params: { id: string }
  random: Random
}

export const anyApi = ({ random }: Pick<Lane, 'random'>): number => between(random, 0, apiCount - 1)

/** Sends a request to any API, and records the outcome. */
export const send = <N extends EndpointName>(
  lane: Pick<Lane, 'account' | 'recorder' | 'random'>,
  name: N,
  options: CallOptions<N> = {},
  operation: string = name,
) =>
  attempt(lane.recorder, operation, (signal) =>
    lane.account.call(name, { ...options, api: anyApi(lane), signal }),
  )

let tokens = 0
/** Contains no special characters of a shell. */
export const newToken = (): string => `t${++tokens}-${process.pid}`

/** Timeout for each command, in milliseconds. */
export const timeoutMs = 20_000

/** Records a command that the client is about to run. */
export function newCommand(
  { sandbox }: Lane,
  kind: string,
  expected: CommandEntry['expected'],
  more: Partial<CommandEntry> = {},
): CommandEntry {
  const entry: CommandEntry = {
    token: newToken(),
    kind,
    sandboxId: sandbox.id,
    expected,
    attempts: 0,
    reported: [],
    refusedAt: [],
    ...more,
  }
  sandbox.commands.push(entry)
  return entry
}

/** Shell code that records the start of a command. Appending one line is atomic. */
export const recordsStart = ({ token }: CommandEntry): string =>
  `echo "${token} $(date +%s%3N)" >> "$HOME/ran"`

/** A command as returned by the API, with or without output. */
interface Result {
  id: string
  status: string
  exit_code: number | null
  reason: string | null
  stdout_bytes: number
  stderr_bytes: number
  truncated: boolean
  stdout?: string
  stderr?: string
}

/** Records a reported result, and compares it with the expected one. */
export function checkResult({ recorder }: Pick<Lane, 'recorder'>, entry: CommandEntry, result: Result): void {
  if (result.status === 'running') return
  const { id, status, exit_code: exitCode, reason } = result
  const reported: ReportedResult = { at: Date.now(), id, status, exitCode, reason }
  entry.reported.push(reported)
  recorder.count(
    `result of: ${entry.kind}`,
    status === 'killed' || status === 'lost' ? `${status}: ${reason}` : status,
  )
  if (status !== 'exited') return
  const { expected } = entry
  if (exitCode !== expected.exitCode) {
    recorder.wrong('an exit code is wrong', { entry: short(entry), result: shortOf(result) }, [id])
    return
  }
  const bytes = { stdout: Buffer.byteLength(expected.stdout), stderr: Buffer.byteLength(expected.stderr) }
  // `truncated` and `reason` show that output is missing.
  const isShort = result.truncated && reason !== null
  const isComplete = (reported: number, printed: number) =>
    reported === printed || (isShort && reported < printed)
  if (!isComplete(result.stdout_bytes, bytes.stdout) || !isComplete(result.stderr_bytes, bytes.stderr)) {
    recorder.wrong(
      'output is missing or was added',
      { entry: short(entry), bytes, result: shortOf(result) },
      [id],
    )
  }
  if (result.truncated || result.stdout === undefined) return
  if (result.stdout !== expected.stdout || result.stderr !== expected.stderr) {
    recorder.wrong('output differs from what was printed', { entry: short(entry), result: shortOf(result) }, [
      id,
    ])
  }
}

const cut = (text: string) => (text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text)

export const short = (entry: CommandEntry) => ({
  ...entry,
  expected: { ...entry.expected, stdout: cut(entry.expected.stdout), stderr: cut(entry.expected.stderr) },
})

const shortOf = (result: Result) => ({
  ...result,
  stdout: cut(result.stdout ?? ''),
  stderr: cut(result.stderr ?? ''),
})
