/** Records requests and responses of the clients, and the violations found in them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../support/account.ts'
import type { Line, Process } from '../support/process.ts'

/** One command that a client wants to run exactly once. */
export interface CommandEntry {
  /** Unique; the command writes it into the sandbox's file `ran` when it starts. */
  token: string
  kind: string
  sandboxId: string
  /** Its exit code and output if no fault affects it. */
  expected: { exitCode: number; stdout: string; stderr: string }
  /** Its Idempotency-Key. */
  key?: string | undefined
  attempts: number
  /** Results reported by any route, oldest first. */
  reported: ReportedResult[]
  /** When each error arrived that states that the command did not run. */
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
  /** Whether a client asked to destroy it. */
  isDestroyRequested: boolean
  commands: CommandEntry[]
  /** When each token was written, in milliseconds; undefined when the file could not be read in time. */
  ran?: Map<string, number[]> | undefined
}

export interface Wrong {
  what: string
  evidence: unknown
  /** Related log lines of the processes. */
  lines: Line[]
}

/** Number of violations of each label that are shown with their evidence. */
const shownOfEach = 5
const linesShown = 15
/** Errors among the last lines of a process are shown even if they contain none of the ids. */
const recentLines = 100

export class Recorder {
  readonly sandboxes = new Map<string, SandboxEntry>()
  /** Sandboxes and pods that were the target of a fault. */
  readonly harmed = new Set<string>()
  /** When PostgreSQL was killed, in milliseconds since 1970. */
  readonly crashes: number[] = []
  /** Intervals in which PostgreSQL was frozen. */
  readonly freezes: { from: number; to: number }[] = []
  /** Requests in progress, for the fault that disconnects a client. */
  readonly inFlight = new Set<AbortController>()
  readonly wrongs: Wrong[] = []
  readonly counts = { operations: new Map<string, Map<string, number>>(), wrong: new Map<string, number>() }
  private readonly processes: () => readonly Process[]
  private readonly log: (line: string) => void

  /**
   * @param processes all processes of the run, for their logs
   * @param log receives each violation immediately, because a run may last a night
   */
  constructor(processes: () => readonly Process[], log: (line: string) => void) {
    this.processes = processes
    this.log = log
  }

  /** @param ids select log lines */
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

  /** When a worker was about to store the exit status of a command, in milliseconds since 1970. */
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

/** Longer than the limits of a request, a frozen process and a restart together. */
const answerMs = 90_000
const failedPauseMs = 100

/** Errors that clients never cause: their credentials are valid, and a repeated request is unchanged. */
const neverRefused: ReadonlySet<string> = new Set(['invalid_credentials', 'idempotency_conflict'])

/** Operations that answer 404 only if the sandbox does not exist. A secret or a command may not have been created. */
const isOfSandbox =
  /^(exec: |getSandbox|destroy|listExecs|listFiles|globFiles|grepFiles|createFile|writeRawFile)/

export type Outcome<T> = { ok: T } | { failed: string; refusal?: Refusal }

/**
 * Sends a request and records its outcome. A fault explains an error response, a broken connection and a client that
 * left. A missing response, a 500 and a response outside the contract are violations.
 */
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
    if (late.aborted) recorder.wrong('a request got no response', { operation, afterMs: answerMs })
    else if (refusal && refusal.status >= 500 && refusal.status !== 503 && refusal.status !== 502) {
      recorder.wrong('a request got an internal error', { operation, problem: refusal.problem }, [
        refusal.problem.request_id as string,
      ])
    } else if (refusal && neverRefused.has(refusal.code)) {
      recorder.wrong('a valid request was rejected', { operation, problem: refusal.problem }, [
        refusal.problem.request_id as string,
      ])
    } else if (refusal?.code === 'not_found' && isOfSandbox.test(operation)) {
      recorder.wrong('an existing sandbox was not found', { operation, problem: refusal.problem }, [
        refusal.problem.request_id as string,
      ])
    } else if (failed === 'unexpected') {
      recorder.wrong('a response is outside the contract', {
        operation,
        error: String((error as Error).stack),
      })
    }
    return refusal ? { failed, refusal } : { failed }
  } finally {
    recorder.inFlight.delete(request)
  }
}

/** Errors of fetch, a stream or a WebSocket when a connection breaks. */
const broken =
  /fetch failed|terminated|ECONN|EPIPE|socket hang up|other side closed|Body is unusable|broke off/
/** Errors of JSON.parse when a response was cut off. */
const cutShort = /Unexpected end of JSON|Unterminated string in JSON/

function describe(error: unknown): string {
  if (error instanceof Refusal) return error.code
  const { message = '', code = '' } = error as NodeJS.ErrnoException
  return broken.test(`${message} ${code}`) || cutShort.test(message) ? 'connection broke' : 'unexpected'
}
