/** Records clients' requests and responses, and detects violations. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../support/account.ts'
import type { Line, Process } from '../support/process.ts'

/** A command that a client wants to run exactly once. */
export interface CommandEntry {
  /** Unique. The command appends it to the sandbox's file `ran` when it starts. */
  token: string
  kind: string
  sandboxId: string
  expected: { exitCode: number; stdout: string; stderr: string }
  key?: string | undefined
  attempts: number
  /** Results reported by any route, in order of arrival. */
  reported: ReportedResult[]
  /** Times of errors that state that the command did not run. */
  refusedAt: number[]
}

export interface ReportedResult {
  /** Milliseconds since 1970, by the machine's clock. */
  at: number
  id: string
  status: string
  exitCode: number | null
  reason: string | null
}

export interface SandboxEntry {
  id: string
  accountId: string
  isDestroyRequested: boolean
  commands: CommandEntry[]
  /** Times in milliseconds when each token was written, or undefined if the file was not read. */
  ran?: Map<string, number[]> | undefined
}

export interface Wrong {
  what: string
  evidence: unknown
  lines: Line[]
}

/** Maximum number of violations per label that are shown in full. */
const shownOfEach = 5
const linesShown = 15
/** Number of recent log lines whose errors are shown even without a matching id. */
const recentLines = 100

export class Recorder {
  readonly sandboxes = new Map<string, SandboxEntry>()
  /** Sandboxes and pods that a fault has targeted. */
  readonly harmed = new Set<string>()
  /** When PostgreSQL was killed, in milliseconds since 1970. */
  readonly crashes: number[] = []
  /** Intervals during which PostgreSQL was frozen. */
  readonly freezes: { from: number; to: number }[] = []
  readonly inFlight = new Set<AbortController>()
  readonly wrongs: Wrong[] = []
  readonly counts = { operations: new Map<string, Map<string, number>>(), wrong: new Map<string, number>() }
  private readonly processes: () => readonly Process[]
  private readonly log: (line: string) => void

  /** @param log receives violations immediately, because a run may last a night */
  constructor(processes: () => readonly Process[], log: (line: string) => void) {
    this.processes = processes
    this.log = log
  }

  wrong(what: string, evidence: unknown, ids: readonly (string | undefined)[] = []): void {
    const count = this.counts.wrong.get(what) ?? 0
    this.counts.wrong.set(what, count + 1)
    if (count >= shownOfEach) return
    const wrong = { what, evidence, lines: this.linesOf(ids) }
    this.wrongs.push(wrong)
    this.log(`chaos: wrong: ${JSON.stringify(wrong)}`)
  }

  count(operation: string, outcome: string): void {
    const outcomes = this.counts.operations.get(operation) ?? new Map<string, number>()
    this.counts.operations.set(operation, outcomes)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }

  /** When a worker was about to store a command's exit status, in milliseconds since 1970. */
  endedAt(execId: string): number | undefined {
    const lines = this.processes().flatMap((process) => process.lines)
    const isExit = (msg: string) => msg === 'a command ended' || msg === 'a command is lost'
    return lines.find((line) => line.exec_id === execId && isExit(line.msg))?.seenAt
  }

  private linesOf(ids: readonly (string | undefined)[]): Line[] {
    const wanted = ids.filter((id) => id !== undefined)
    if (wanted.length === 0) return []
    const found = this.processes().flatMap((process) => {
      const recent = process.lines.length - recentLines
      return process.lines
        .map((line) => ({ ...line, by: process.name }))
        .filter(
          (line, index) =>
            wanted.some((id) => JSON.stringify(line).includes(id)) ||
            (line.level === 'error' && index >= recent),
        )
    })
    return found.sort((a, b) => timeOf(a) - timeOf(b)).slice(-linesShown)
  }
}

const timeOf = (line: Line): number => new Date(line.time as string | number).getTime() || 0

/** Maximum time for a response. It exceeds the request limits, a freeze and a restart combined. */
const answerMs = 90_000
const failedPauseMs = 100

/** Errors that clients never cause. Their credentials are valid, and they repeat requests unchanged. */
const neverRefused: ReadonlySet<string> = new Set(['invalid_credentials', 'idempotency_conflict'])

/**
 * Operations for which a 404 means that the sandbox does not exist. Objects other than sandboxes may never
 * have been created.
 */
const isOfSandbox =
  /^(exec: |getSandbox|destroy|listExecs|listFiles|globFiles|grepFiles|createFile|writeRawFile)/

export type Outcome<T> = { ok: T } | { failed: string; refusal?: Refusal }

/** Sends a request and records the outcome. Faults explain all errors for which `violationOf` returns nothing. */
export async function attempt<T>(
  recorder: Recorder,
  operation: string,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<Outcome<T>> {
  const request = new AbortController()
  const late = AbortSignal.timeout(answerMs)
  recorder.inFlight.add(request)
  try {
    const ok = await ask(AbortSignal.any([request.signal, late]))
    recorder.count(operation, 'ok')
    return { ok }
  } catch (error) {
    const failed = request.signal.aborted ? 'client left' : describe(error)
    await sleep(failedPauseMs)
    recorder.count(operation, failed)
    const refusal = error instanceof Refusal ? error : undefined
    const what = late.aborted ? 'a request got no response' : violationOf(operation, failed, refusal)
    if (what) {
      const evidence = { operation, problem: refusal?.problem, error: String((error as Error).stack) }
      recorder.wrong(what, evidence, [refusal?.problem.request_id as string | undefined])
    }
    return refusal ? { failed, refusal } : { failed }
  } finally {
    recorder.inFlight.delete(request)
  }
}

function violationOf(operation: string, failed: string, refusal: Refusal | undefined): string | undefined {
  if (!refusal) return failed === 'unexpected' ? 'a response is outside the contract' : undefined
  const { status, code } = refusal
  if (status >= 500 && status !== 503 && status !== 502) return 'a request got an internal error'
  if (neverRefused.has(code)) return 'a valid request was rejected'
  if (code === 'not_found' && isOfSandbox.test(operation)) return 'an existing sandbox was not found'
  return undefined
}

/** Errors from fetch, a stream or a WebSocket when the connection breaks. */
const broken =
  /fetch failed|terminated|ECONN|EPIPE|socket hang up|other side closed|Body is unusable|broke off/
/** Errors from JSON.parse for an incomplete response. */
const cutShort = /Unexpected end of JSON|Unterminated string in JSON/

function describe(error: unknown): string {
  if (error instanceof Refusal) return error.code
  const { message = '', code = '' } = error as NodeJS.ErrnoException
  return broken.test(`${message} ${code}`) || cutShort.test(message) ? 'connection broke' : 'unexpected'
}
