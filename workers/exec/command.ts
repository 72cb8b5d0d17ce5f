/** One command's output, stdin and exit status. `workers/shell/` runs the command in the pod. */
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

export type ExitStatus = Pick<ExecResult, 'status' | 'exit_code' | 'signal' | 'reason' | 'start_error'>

/** How long clients wait for PostgreSQL to commit the exit status. */
const commitWaitMs = 10_000

const running = { status: 'running', exit_code: null, signal: null, reason: null, start_error: null } as const

export const withoutExitCode = (
  status: 'timed_out' | 'killed' | 'lost',
  reason: string | null,
): ExitStatus => ({ ...running, status, reason })

export interface Body {
  pid: number | undefined
  signal(name: string): Promise<void>
  /** Sends TERM, then KILL after a delay. Resolves when the command has ended or could not be killed. */
  end(): Promise<void>
  resize?(size: { rows: number; columns: number }): Promise<void>
}

/**
 * Facts about a command that stay in memory until its sandbox is destroyed. Large request fields do not
 * belong here.
 */
export interface CommandFacts {
  id: string
  sandboxId: string
  accountId: string
  /** How long the command keeps running without a client, if `needsClient` is set. */
  graceMs: number
  /** Whether the command is stopped if it has no client for `graceMs`. */
  needsClient: boolean
  outputEncoding: ExecResult['output_encoding']
  startedAt: Date
}

export class Command {
  readonly facts: CommandFacts
  readonly log = new OutputLog()
  readonly stdin = new StdinFeed()
  readonly clients: AttachedClients
  private readonly inline: Record<StreamName, BoundedOutput> = {
    stdout: new BoundedOutput(limits.outputBytes),
    stderr: new BoundedOutput(limits.outputBytes),
  }
  private readonly started = performance.now()
  private readonly settle = Promise.withResolvers<void>()
  /** Resolves once PostgreSQL has committed the exit status. The status must not be reported before then. */
  readonly ended = this.settle.promise
  private readonly begun = Promise.withResolvers<void>()
  private readonly commitTimeout = Promise.withResolvers<void>()
  private readonly record: (command: Command, end: ExecOutcome) => Promise<ExitStatus | undefined>
  private readonly delivered = Promise.withResolvers<void>()
  private isDelivered = false
  private endedAt = 0
  private ending: ExitStatus | undefined
  private recorded: ExitStatus | undefined
  private redactors: Record<StreamName, Redactor> | undefined
  private durationMs = 0
  private isCut = false
  /** Pid in the sandbox's PID namespace; null while unknown. */
  pid: number | null = null
  private body: Body | undefined
  /** Exit status set when this worker stops the command. Overrides the status from the shell. */
  private cause: ExitStatus | undefined
  private isSignaled = false

  /**
   * @param record stores the exit status. Resolves with the status in the row if another process has already
   *   stored a different one, which clients may have received
   */
  constructor(
    facts: CommandFacts,
    record: (command: Command, end: ExecOutcome) => Promise<ExitStatus | undefined>,
  ) {
    this.facts = facts
    this.record = record
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

  /** Whether the command exited, its exit status is stored, and no signal was sent that may arrive later. */
  get exitedUnsignaled(): boolean {
    return this.recorded?.status === 'exited' && !this.isSignaled
  }

  get keptBytes(): number {
    return this.log.keptBytes + this.inline.stdout.keptBytes + this.inline.stderr.keptBytes
  }

  /**
   * Whether the command is running, or ended less than `maxMs` ago and no client has received its exit
   * status.
   */
  isPending(maxMs: number): boolean {
    return this.recorded === undefined || (!this.isDelivered && performance.now() - this.endedAt < maxMs)
  }

  /** Waits until a client has received the exit status, for at most `maxMs` after the end of the command. */
  async waitForDelivery(maxMs: number): Promise<void> {
    await this.ended
    const ms = maxMs - (performance.now() - this.endedAt)
    if (ms > 0) await withTimeout(ms, this.delivered.promise)
  }

  begin(body: Body, stdin: Writable): void {
    this.body = body
    this.pid = body.pid ?? null
    this.stdin.open(stdin)
    this.begun.resolve()
    // The command may have been stopped while it was starting.
    if (this.cause) void body.end()
  }

  redactWith(patterns: SecretPatterns | undefined): void {
    this.redactors = { stdout: new Redactor(patterns), stderr: new Redactor(patterns) }
  }

  async take(stream: StreamName, chunk: Buffer): Promise<void> {
    if (!this.isRunning) return
    await this.keep(stream, this.redactors ? this.redactors[stream].push(chunk) : chunk)
  }

  private async keep(stream: StreamName, redacted: Buffer): Promise<void> {
    if (redacted.length === 0) return
    this.inline[stream].push(redacted)
    await this.log.append(stream, redacted)
  }

  /**
   * Marks the command as ended and stores its exit status. Has no effect if the command has already ended.
   * @param isCut whether an unknown amount of output was lost
   */
  finish(ending: ExitStatus, isCut = false): void {
    if (this.ending) return
    this.isCut = isCut
    this.ending = this.cause ?? ending
    this.endedAt = performance.now()
    this.durationMs = Math.round((this.endedAt - this.started) * 1000) / 1000
    this.log.release()
    for (const stream of ['stdout', 'stderr'] as const) {
      // At the end, held-back bytes can no longer become part of a secret.
      if (this.redactors) void this.keep(stream, this.redactors[stream].flush())
    }
    this.log.end()
    // The command object lives until its sandbox is destroyed, so it must not keep these in memory.
    this.redactors = undefined
    this.body = undefined
    this.stdin.close()
    void this.write(this.ending)
  }

  private async write(ending: ExitStatus): Promise<void> {
    const timer = setTimeout(this.commitTimeout.resolve, commitWaitMs)
    timer.unref()
    this.recorded = (await this.record(this, { ...this.summary(), ...ending })) ?? ending
    clearTimeout(timer)
    this.settle.resolve()
  }

  /** Waits for PostgreSQL to commit the exit status. Returns false if this takes too long. */
  async waitForRecordedExit(): Promise<boolean> {
    await Promise.race([this.ended, this.commitTimeout.promise])
    return this.recorded !== undefined
  }

  async stop(cause: ExitStatus): Promise<void> {
    if (!this.isRunning || this.cause) return
    this.cause = cause
    this.log.release()
    await this.body?.end()
  }

  /**
   * Sends a signal to the command. After TERM, sends KILL if the command does not exit.
   * @throws {Problem} `exec_finished` if the command has ended
   */
  async signal(name: string): Promise<void> {
    // A signal to a starting command is sent as soon as the command runs.
    await Promise.race([this.begun.promise, this.ended])
    if (!this.isRunning || !this.body) throw finished('it has ended')
    this.isSignaled = true
    // Unlike `stop`, TERM and KILL keep the command's own exit status.
    if (name === 'TERM' || name === 'KILL') this.log.release()
    if (name === 'TERM') return await this.body.end()
    await this.body.signal(name)
  }

  async resize(size: { rows: number; columns: number }): Promise<void> {
    await this.body?.resize?.(size)
  }

  result(): ExecResult {
    const { stdout, stderr } = this.inline
    const { outputEncoding } = this.facts
    return {
      ...this.summary(),
      stdout: stdout.toBuffer().toString(outputEncoding),
      stderr: stderr.toBuffer().toString(outputEncoding),
      lossy: outputEncoding === 'utf-8' && !(stdout.isText && stderr.isText),
      output_encoding: outputEncoding,
    }
  }

  /** Resolves with the data of the `start` event once the pid is known or the command has ended. */
  async start(): Promise<{ id: string; pid: number | null }> {
    await Promise.race([this.begun.promise, this.ended])
    return { id: this.id, pid: this.pid }
  }

  summary(): ExecOutcome {
    if (this.recorded) {
      this.isDelivered = true
      this.delivered.resolve()
    }
    return {
      id: this.id,
      pid: this.pid,
      ...(this.recorded ?? running),
      stdout_bytes: this.inline.stdout.bytes,
      stderr_bytes: this.inline.stderr.bytes,
      truncated: this.isCut || this.inline.stdout.truncated || this.inline.stderr.truncated,
      started_at: this.facts.startedAt.toISOString(),
      duration_ms: this.isRunning ? Math.round(performance.now() - this.started) : this.durationMs,
    }
  }

  /**
   * Drops `bytes` or slightly more of the oldest output, but never output that a reader has yet to receive.
   */
  dropOutput(bytes: number): void {
    this.log.dropRead(bytes)
    if (this.isRunning || this.log.keptBytes > 0) return
    this.inline.stdout.drop()
    this.inline.stderr.drop()
  }
}
