/**
 * One command from its start to its end: its output for any number of readers, its stdin, its
 * signals, and who still waits for it. How it runs in the pod is workers/shell's.
 */
import type { Writable } from 'node:stream'
import type { ExecEnd, ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { SecretPatterns } from '../secrets/patterns.ts'
import { makeRedactor, type Redactor } from '../secrets/redactor.ts'
import { BoundedOutput } from '../shell/output.ts'
import { OutputLog, type OutputOffset, type Reader, type StreamName } from './output-log.ts'
import { finished, StdinFeed } from './stdin-feed.ts'

/** How a command ended, in the words of the result. */
export type Ending = Pick<ExecResult, 'status' | 'exit_code' | 'signal' | 'reason'>

/** How long those who wait for an end also wait for PostgreSQL, which is away, to take it. */
const untoldMs = 10_000

export const unknownEnd = (status: 'timed_out' | 'killed' | 'lost', reason: string | null): Ending => ({
  status,
  exit_code: null,
  signal: null,
  reason,
})

/** What runs the command: reached through the pod. */
export interface Body {
  signal(name: string): Promise<void>
  /** Polite first, then by force; resolves when it has ended or nothing more can be done. */
  end(): Promise<void>
  resize?(size: { rows: number; columns: number }): Promise<void>
}

export interface CommandFacts {
  id: string
  sandboxId: string
  accountId: string
  request: ExecRequest
  /** Ended when nobody waits for it or follows it any more, and nobody comes back. */
  needsClient: boolean
  startedAt: Date
}

export class Command {
  readonly facts: CommandFacts
  readonly log = new OutputLog()
  readonly stdin = new StdinFeed()
  /** Resolves once its end stands in its row, and so may be told. */
  readonly ended: Promise<void>
  /** Its group is ended by us, or about to be: that its shell dies too is no news of its pod. */
  isBeingEnded = false
  private readonly inline: Record<StreamName, BoundedOutput> = {
    stdout: new BoundedOutput(limits.outputBytes),
    stderr: new BoundedOutput(limits.outputBytes),
  }
  private readonly started = performance.now()
  private readonly settle = Promise.withResolvers<void>()
  private readonly begun = Promise.withResolvers<void>()
  private readonly untold = Promise.withResolvers<void>()
  private readonly record: (command: Command, end: ExecEnd) => Promise<Ending | undefined>
  private ending: Ending | undefined
  /** What stands in its row. */
  private told: Ending | undefined
  private redactors: Record<StreamName, Redactor> | undefined
  private durationMs = 0
  private body: Body | undefined
  /** Clients that wait for it or read it, those within their grace included. */
  private present = 0
  /** Readers that left and may yet come back: the command waits for them too. */
  private readonly absent = new Set<Reader>()
  /** Set once it is being ended by us: what its own status says then is not its doing. */
  private cause: Ending | undefined

  /**
   * @param record writes its end down: whoever is told of it finds it in the list as well. It resolves
   * with another one that stands there already: what clients were told stays true.
   */
  constructor(facts: CommandFacts, record: (command: Command, end: ExecEnd) => Promise<Ending | undefined>) {
    this.facts = facts
    this.record = record
    this.ended = this.settle.promise
  }

  get id(): string {
    return this.facts.id
  }

  get isRunning(): boolean {
    return this.ending === undefined
  }

  /** Bytes that are kept for those who ask later. */
  get keptBytes(): number {
    return this.log.keptBytes + this.inline.stdout.keptBytes + this.inline.stderr.keptBytes
  }

  begin(body: Body, stdin: Writable): void {
    this.body = body
    this.stdin.open(stdin)
    this.begun.resolve()
    // Whatever was decided while it was being started.
    if (this.cause) void body.end()
  }

  /** Blanks this out of both streams. */
  redactWith(patterns: SecretPatterns | undefined): void {
    this.redactors = { stdout: makeRedactor(patterns), stderr: makeRedactor(patterns) }
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

  finish(ending: Ending): void {
    if (this.ending) return
    this.ending = this.cause ?? ending
    this.durationMs = Math.round((performance.now() - this.started) * 1000) / 1000
    this.log.release()
    for (const stream of ['stdout', 'stderr'] as const) {
      // What was held back is no secret. Nothing waits any more, so it is taken at once.
      if (this.redactors) void this.keep(stream, this.redactors[stream].flush())
    }
    this.log.end()
    // It is remembered as long as its sandbox lives, and what ran it is not.
    this.redactors = undefined
    this.body = undefined
    this.stdin.close()
    void this.write(this.ending)
  }

  private async write(ending: Ending): Promise<void> {
    const late = setTimeout(this.untold.resolve, untoldMs)
    late.unref()
    this.told = (await this.record(this, { ...this.summary(), ...ending })) ?? ending
    clearTimeout(late)
    this.settle.resolve()
  }

  /** Resolves once its end may be told. @returns false when it could not be written down: then nothing is told of it */
  async mayBeTold(): Promise<boolean> {
    await Promise.race([this.ended, this.untold.promise])
    return this.told !== undefined
  }

  /** Ends it for a reason of ours. */
  async stop(cause: Ending): Promise<void> {
    if (!this.isRunning || this.cause) return
    this.cause = cause
    this.isBeingEnded = true
    this.log.release()
    await this.body?.end()
  }

  /** @throws {Problem} `exec_finished` */
  async signal(name: string): Promise<void> {
    // One that has only just been asked for is signalled as soon as it is there.
    await Promise.race([this.begun.promise, this.ended])
    if (!this.isRunning || !this.body) throw finished('it has ended')
    // The polite one is followed by force; whatever it ends with then is its own.
    if (name === 'TERM' || name === 'KILL') {
      this.isBeingEnded = true
      this.log.release()
    }
    if (name === 'TERM') return await this.body.end()
    await this.body.signal(name)
  }

  async resize(size: { rows: number; columns: number }): Promise<void> {
    await this.body?.resize?.(size)
  }

  /** A reader from an offset on; while it is there, and within its grace, the command waits for it. */
  attach(from?: OutputOffset): Reader {
    this.arrive()
    const reader = this.log.read(from)
    // Who is back reads on here: the command need not wait for the connection that broke as well.
    if (from) this.formerOf(from)?.leave()
    return reader
  }

  detach(reader: Reader): void {
    this.absent.add(reader)
    this.leave(() => {
      this.absent.delete(reader)
      reader.leave()
    })
  }

  /** The reader that was told most likely all up to this offset, and maybe more that did not arrive. */
  private formerOf({ stdout, stderr }: OutputOffset): Reader | undefined {
    const ahead = ({ offset }: Reader) => offset.stdout - stdout + offset.stderr - stderr
    return [...this.absent]
      .filter(({ hasLeft, offset }) => !hasLeft && offset.stdout >= stdout && offset.stderr >= stderr)
      .sort((a, b) => ahead(a) - ahead(b))[0]
  }

  /** Somebody waits for the command without reading along. */
  arrive(): void {
    this.present++
  }

  /** Whoever waited has gone; a command that needs a client is ended when none comes back. */
  leave(forget: () => void = () => {}): void {
    const graceMs = this.facts.request.grace_ms ?? limits.graceMs.default
    const goOn = () => {
      this.present--
      forget()
      if (this.present > 0 || !this.facts.needsClient) return
      void this.stop(unknownEnd('killed', 'its client left'))
    }
    if (!this.isRunning) {
      forget()
      return
    }
    const timer = setTimeout(goOn, graceMs)
    timer.unref()
    void this.ended.then(() => {
      clearTimeout(timer)
      forget()
    })
  }

  /** The result so far, with what is kept of its output. */
  result(): ExecResult {
    return {
      id: this.id,
      ...(this.told ?? { status: 'running', exit_code: null, signal: null, reason: null }),
      stdout: this.inline.stdout.toString(),
      stderr: this.inline.stderr.toString(),
      stdout_bytes: this.inline.stdout.bytes,
      stderr_bytes: this.inline.stderr.bytes,
      truncated: this.inline.stdout.truncated || this.inline.stderr.truncated,
      started_at: this.facts.startedAt.toISOString(),
      duration_ms: this.isRunning ? Math.round(performance.now() - this.started) : this.durationMs,
    }
  }

  summary(): ExecEnd {
    const { stdout: _stdout, stderr: _stderr, ...rest } = this.result()
    return rest
  }

  /** Lets go of output that nobody asked for in time, and of none that a reader is yet to get. */
  dropOutput(bytes: number): void {
    this.log.dropRead(bytes)
    if (this.isRunning || this.log.keptBytes > 0) return
    this.inline.stdout.drop()
    this.inline.stderr.drop()
  }
}
