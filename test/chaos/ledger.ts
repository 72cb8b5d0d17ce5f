/** What the clients asked, what they were told, and what was wrong with it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../support/account.ts'
import type { Line, Process } from '../support/process.ts'

/** One command that a client wants to be run once. */
export interface CommandEntry {
  /** Unique; the command writes it into the sandbox's file `ran` when it starts. */
  token: string
  kind: string
  sandboxId: string
  /** What it prints and ends with when nothing befalls it. */
  expected: { exitCode: number; stdout: string; stderr: string }
  /** Repeated requests carry it. */
  key?: string | undefined
  attempts: number
  /** Ends that clients were told, by whichever route, oldest first. */
  told: Told[]
  /** When each refusal came that says that nothing was done. */
  refusedAt: number[]
}

export interface Told {
  /** Milliseconds since 1970, of the machine. */
  at: number
  id: string
  status: string
  exitCode: number | null
  reason: string | null
}

export interface SandboxEntry {
  id: string
  accountId: string
  /** The client asked to destroy it; what else ends it is for the row to say. */
  isToGo: boolean
  isToldDestroyed: boolean
  commands: CommandEntry[]
  /** When each token was written, in milliseconds; undefined when the file could not be read in time. */
  ran?: Map<string, number[]> | undefined
}

export interface Wrong {
  what: string
  evidence: unknown
  /** What the processes logged of it. */
  lines: Line[]
}

/** Of what is wrong in the same way, so many are told with their evidence. */
const shownOfEach = 5
const linesShown = 15
/** What a process called an error just before may be the cause, whatever it names. */
const recentLines = 100

export class Ledger {
  readonly sandboxes = new Map<string, SandboxEntry>()
  /** Sandboxes and pods that a fault was aimed at. */
  readonly harmed = new Set<string>()
  /** When PostgreSQL was killed, in milliseconds since 1970. */
  readonly crashes: number[] = []
  /** While PostgreSQL was frozen, and wrote nothing. */
  readonly standstills: { from: number; to: number }[] = []
  /** Requests under way, for a fault that takes a client away. */
  readonly flights = new Set<AbortController>()
  readonly wrongs: Wrong[] = []
  readonly counts = { operations: new Map<string, Map<string, number>>(), wrong: new Map<string, number>() }
  private readonly processes: () => readonly Process[]
  private readonly say: (line: string) => void

  /**
   * @param processes all that there were, for what they logged
   * @param say is told what is wrong at once: a run may last a night
   */
  constructor(processes: () => readonly Process[], say: (line: string) => void) {
    this.processes = processes
    this.say = say
  }

  /** @param ids what to look for in the logs */
  wrong(what: string, evidence: unknown, ids: readonly (string | undefined)[] = []): void {
    const known = this.counts.wrong.get(what) ?? 0
    this.counts.wrong.set(what, known + 1)
    if (known >= shownOfEach) return
    const wrong = { what, evidence, lines: this.linesOf(ids) }
    this.wrongs.push(wrong)
    this.say(`chaos: wrong: ${JSON.stringify(wrong)}`)
  }

  note(operation: string, outcome: string): void {
    const outcomes = this.counts.operations.get(operation) ?? new Map<string, number>()
    this.counts.operations.set(operation, outcomes)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }

  /** When a worker was about to write down how a command ended, in milliseconds since 1970. */
  endedAt(execId: string): number | undefined {
    const lines = this.processes().flatMap((process) => process.lines)
    return lines.find((line) => line.exec_id === execId && line.msg === 'a command ended')?.seenAt
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

/** More than the limits of a request, a frozen process and a restart take together. */
const answerMs = 90_000
/** A client that was refused does not ask again at once. */
const failedPauseMs = 100

/** Every credential of the clients holds, and they repeat a request as it was. */
const neverRefused: ReadonlySet<string> = new Set(['invalid_credentials', 'idempotency_conflict'])

/** Only operations on a sandbox: a secret or a command may never have been made. */
const isOfSandbox =
  /^(exec: |getSandbox|destroy|listExecs|listFiles|globFiles|grepFiles|createFile|writeRawFile)/

export type Outcome<T> = { ok: T } | { failed: string; refusal?: Refusal }

/**
 * Asks, and writes down what came of it. A refusal, a broken connection and a client that was taken away are
 * failures that a fault explains; no answer at all, a 500, and an answer outside the contract are wrong.
 */
export async function attempt<T>(
  ledger: Ledger,
  operation: string,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<Outcome<T>> {
  const flight = new AbortController()
  const late = AbortSignal.timeout(answerMs)
  ledger.flights.add(flight)
  try {
    const ok = await ask(AbortSignal.any([flight.signal, late]))
    ledger.note(operation, 'ok')
    return { ok }
  } catch (error) {
    const failed = flight.signal.aborted ? 'client left' : describe(error)
    await sleep(failedPauseMs)
    ledger.note(operation, failed)
    const refusal = error instanceof Refusal ? error : undefined
    if (late.aborted) ledger.wrong('a request got no answer', { operation, afterMs: answerMs })
    else if (refusal && refusal.status >= 500 && refusal.status !== 503 && refusal.status !== 502) {
      ledger.wrong(
        'a request was answered by a fault of the program',
        { operation, problem: refusal.problem },
        [refusal.problem.request_id as string],
      )
    } else if (refusal && neverRefused.has(refusal.code)) {
      ledger.wrong(
        'a request was refused for what it has not done',
        { operation, problem: refusal.problem },
        [refusal.problem.request_id as string],
      )
    } else if (refusal?.code === 'not_found' && isOfSandbox.test(operation)) {
      ledger.wrong('a sandbox that was made is not known', { operation, problem: refusal.problem }, [
        refusal.problem.request_id as string,
      ])
    } else if (failed === 'unexpected') {
      ledger.wrong('an answer is outside the contract', { operation, error: String((error as Error).stack) })
    }
    return refusal ? { failed, refusal } : { failed }
  } finally {
    ledger.flights.delete(flight)
  }
}

/** What fetch, a stream or a WebSocket says of a connection that broke. */
const broken =
  /fetch failed|terminated|ECONN|EPIPE|socket hang up|other side closed|Body is unusable|broke off/
/** An answer that was cut in its middle. */
const cutShort = /Unexpected end of JSON|Unterminated string in JSON/

function describe(error: unknown): string {
  if (error instanceof Refusal) return error.code
  const { message = '', code = '' } = error as NodeJS.ErrnoException
  return broken.test(`${message} ${code}`) || cutShort.test(message) ? 'connection broke' : 'unexpected'
}
