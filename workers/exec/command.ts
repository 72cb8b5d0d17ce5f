/**
 * One command: its output for any number of readers, its stdin and its signals. Its clients are in attached-clients.ts, and
 * workers/shell/ runs it in the pod.
 */
import type { Writable } from 'node:stream'
import type { ExecOutcome, ExecResult } from '../../shared/contract/exec.ts'
import { clientDisconnected } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { SecretPatterns } from '../secrets/patterns.ts'
import { Redactor } from '../secrets/redactor.ts'
import { BoundedOutput } from '../shell/output.ts'
import { AttachedClients } from './attached-clients.ts'
import { OutputLog, type StreamName } from './output-log.ts'
import { finished, StdinFeed } from './stdin-feed.ts'

export type ExitStatus = Pick<ExecResult, 'status' | 'exit_code' | 'signal' | 'reason'>

/** Milliseconds that clients wait for an unavailable PostgreSQL to take the exit status. */
const untoldMs = 10_000

export const withoutExitCode = (
  status: 'timed_out' | 'killed' | 'lost',
  reason: string | null,
): ExitStatus => ({
  status,
  exit_code: null,
  signal: null,
  reason,
})

export interface Body {
  signal(name: string): Promise<void>
  /** Asks the command to end, then kills it. Resolves when it has ended or nothing more can be done. */
  end(): Promise<void>
  resize?(size: { rows: number; columns: number }): Promise<void>
}

/** As long as its sandbox lives these are kept, so nothing of its request that may be large is among them. */
export interface CommandFacts {
  id: string
  sandboxId: string
  accountId: string
  /** Milliseconds that it outlives a client that left, where it needs one. */
  graceMs: number
  /** Whether it is ended when no client waits for it or follows it any more, and none comes back within its grace. */
  needsClient: boolean
  startedAt: Date
}

export class Command {
  readonly facts: CommandFacts
  readonly log = new OutputLog()
  readonly stdin = new StdinFeed()
  readonly clients: AttachedClients
  /** Resolves once the exit status is in the row, so that it may be reported. */
  readonly ended: Promise<void>
  private readonly inline: Record<StreamName, BoundedOutput> = {
    stdout: new BoundedOutput(limits.outputBytes),
    stderr: new BoundedOutput(limits.outputBytes),
  }
  private readonly started = performance.now()
  private readonly settle = Promise.withResolvers<void>()
  private readonly begun = Promise.withResolvers<void>()
  private readonly untold = Promise.withResolvers<void>()
  private readonly record: (command: Command, end: ExecOutcome) => Promise<ExitStatus | undefined>
  private readonly taken = Promise.withResolvers<void>()
  private isTaken = false
  private endedAt = 0
  private ending: ExitStatus | undefined
  /** The exit status in the row. */
  private told: ExitStatus | undefined
  private redactors: Record<StreamName, Redactor> | undefined
  private durationMs = 0
  private isCut = false
  private body: Body | undefined
  /** Why this worker ends it. Once set, the status that its shell reports does not count. */
  private cause: ExitStatus | undefined

  /**
   * @param record writes the exit status into the row, before it is reported. Resolves with another one that is
   *   already there, because clients may have received that.
   */
  constructor(
    facts: CommandFacts,
    record: (command: Command, end: ExecOutcome) => Promise<ExitStatus | undefined>,
  ) {
    this.facts = facts
    this.record = record
    this.ended = this.settle.promise
    const onOver = () => {
      if (facts.needsClient) void this.stop(withoutExitCode('killed', clientDisconnected))
    }
    this.clients = new AttachedClients(this, { ms: facts.graceMs, onOver })
  }

  get id(): string {
    return this.facts.id
  }

  get isRunning(): boolean {
    return this.ending === undefined
  }

  get keptBytes(): number {
    return this.log.keptBytes + this.inline.stdout.keptBytes + this.inline.stderr.keptBytes
  }

  /** Whether it runs, or ended less than `untakenMs` ago and no client has received the exit status. */
  isHeld(untakenMs: number): boolean {
    return this.told === undefined || (!this.isTaken && performance.now() - this.endedAt < untakenMs)
  }

  async left(untakenMs: number): Promise<void> {
    await this.ended
    const ms = untakenMs - (performance.now() - this.endedAt)
    if (ms > 0) await withTimeout(ms, this.taken.promise)
  }

  begin(body: Body, stdin: Writable): void {
    this.body = body
    this.stdin.open(stdin)
    this.begun.resolve()
    // It may have been stopped while it was being started.
    if (this.cause) void body.end()
  }

  redactWith(patterns: SecretPatterns | undefined): void {
    this.redactors = { stdout: new Redactor(patterns), stderr: new Redactor(patterns) }
  }

  async take(stream: StreamName, chunk: Buffer): Promise<void> {
    if (!this.isRunning) return
    await this.keep(stream, this.redactors ? this.redactors[stream].push(chunk) : chunk)
  }

  private async keep(stream: StreamName, shown: Buffer): Promise<void> {
    if (shown.length === 0) return
    this.inline[stream].push(shown)
    await this.log.append(stream, shown)
  }

  /** @param isCut an unknown part of its output was lost */
  finish(ending: ExitStatus, isCut = false): void {
    if (this.ending) return
    this.isCut = isCut
    this.ending = this.cause ?? ending
    this.endedAt = performance.now()
    this.durationMs = Math.round((this.endedAt - this.started) * 1000) / 1000
    this.log.release()
    for (const stream of ['stdout', 'stderr'] as const) {
      // The bytes that the redactor held back are no secret. No reader blocks the command any more.
      if (this.redactors) void this.keep(stream, this.redactors[stream].flush())
    }
    this.log.end()
    // The command is remembered as long as its sandbox lives; what ran it is not.
    this.redactors = undefined
    this.body = undefined
    this.stdin.close()
    void this.write(this.ending)
  }

  private async write(ending: ExitStatus): Promise<void> {
    const late = setTimeout(this.untold.resolve, untoldMs)
    late.unref()
    this.told = (await this.record(this, { ...this.summary(), ...ending })) ?? ending
    clearTimeout(late)
    this.settle.resolve()
  }

  /**
   * Resolves once the exit status may be reported.
   * @returns false when it could not be written: then it is not reported
   */
  async mayBeTold(): Promise<boolean> {
    await Promise.race([this.ended, this.untold.promise])
    return this.told !== undefined
  }

  /** Ends it, for a reason other than its own. */
  async stop(cause: ExitStatus): Promise<void> {
    if (!this.isRunning || this.cause) return
    this.cause = cause
    this.log.release()
    await this.body?.end()
  }

  /** @throws {Problem} `exec_finished` */
  async signal(name: string): Promise<void> {
    // A command that is being started is signalled as soon as it runs.
    await Promise.race([this.begun.promise, this.ended])
    if (!this.isRunning || !this.body) throw finished('it has ended')
    // TERM is followed by KILL. The exit status is then the command's own.
    if (name === 'TERM' || name === 'KILL') this.log.release()
    if (name === 'TERM') return await this.body.end()
    await this.body.signal(name)
  }

  async resize(size: { rows: number; columns: number }): Promise<void> {
    await this.body?.resize?.(size)
  }

  /** The result so far, with the kept output. */
  result(): ExecResult {
    const { stdout, stderr } = this.inline
    return {
      ...this.summary(),
      stdout: stdout.toString(),
      stderr: stderr.toString(),
      lossy: !(stdout.isText && stderr.isText),
    }
  }

  summary(): ExecOutcome {
    if (this.told) {
      this.isTaken = true
      this.taken.resolve()
    }
    return {
      id: this.id,
      ...(this.told ?? { status: 'running', exit_code: null, signal: null, reason: null }),
      stdout_bytes: this.inline.stdout.bytes,
      stderr_bytes: this.inline.stderr.bytes,
      truncated: this.isCut || this.inline.stdout.truncated || this.inline.stderr.truncated,
      started_at: this.facts.startedAt.toISOString(),
      duration_ms: this.isRunning ? Math.round(performance.now() - this.started) : this.durationMs,
    }
  }

  /** Drops at least so many bytes of output that no client has asked for in time, and none that a reader has yet to get. */
  dropOutput(bytes: number): void {
    this.log.dropRead(bytes)
    if (this.isRunning || this.log.keptBytes > 0) return
    this.inline.stdout.drop()
    this.inline.stderr.drop()
  }
}
