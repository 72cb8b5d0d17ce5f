/**
 * Checks the liveness of workers. The connections of a frozen worker stay open, so only an unanswered check
 * reveals that the worker is frozen.
 */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { wasStalled } from '../../shared/platform/event-loop-stall.ts'
import type { LivenessTimeouts } from '../../shared/platform/liveness-timeouts.ts'
import type { Logger } from '../../shared/platform/log.ts'
import { checkLiveness } from '../../shared/rpc/alive.ts'
import { openCallAgent } from '../../shared/rpc/channel.ts'
import type { ListedWorker } from '../../shared/rpc/worker-registry.ts'

const checkEveryMs = 1_000
/** Maximum number of further checks after the last call to an unresponsive worker has ended. */
const maxIdleChecks = 60

export class WorkerHealth {
  readonly agent = openCallAgent({ keepAlive: true })
  private readonly watched = new Map<string, Watch>()
  readonly log: Logger
  readonly livenessTimeouts: LivenessTimeouts

  constructor(log: Logger, livenessTimeouts: LivenessTimeouts) {
    this.log = log
    this.livenessTimeouts = livenessTimeouts
  }

  /**
   * Watches a worker while a call to it is open.
   * @param onTimeout called at most once, when the worker stops responding
   * @param bytesMoved returns the bytes transferred for the call; any progress shows that the worker is alive
   * @returns a function that stops watching
   */
  follow(worker: ListedWorker, onTimeout: () => void, bytesMoved: () => number): () => void {
    const watch = this.watched.get(worker.id) ?? new Watch(worker, this)
    this.watched.set(worker.id, watch)
    return watch.add(onTimeout, bytesMoved)
  }

  forget(workerId: string): void {
    this.watched.delete(workerId)
  }

  isSilent(workerId: string): boolean {
    return this.watched.get(workerId)?.isSilent ?? false
  }

  async isAlive(worker: ListedWorker): Promise<boolean> {
    return (await checkLiveness(worker, this.agent, this.livenessTimeouts.answer)) === 'alive'
  }

  close(): void {
    for (const watch of this.watched.values()) watch.stop()
    this.agent.destroy()
  }
}

/** Bytes transferred over a socket in both directions, excluding any that the kernel has not yet accepted. */
export const bytesOver = (socket: Socket | null | undefined): number =>
  !socket ? 0 : socket.bytesRead + socket.bytesWritten - socket.writableLength

/**
 * Checks one worker while calls to it are open. After that, an unresponsive worker is checked until it
 * responds or `maxIdleChecks` is reached.
 */
class Watch {
  isSilent = false
  private readonly calls = new Map<() => void, () => number>()
  private readonly worker: ListedWorker
  private readonly health: WorkerHealth
  private timer: NodeJS.Timeout | undefined
  private checksLeft = maxIdleChecks

  constructor(worker: ListedWorker, health: WorkerHealth) {
    this.worker = worker
    this.health = health
    this.scheduleCheck()
  }

  add(onTimeout: () => void, bytesMoved: () => number): () => void {
    const call = () => onTimeout()
    this.calls.set(call, bytesMoved)
    return () => this.calls.delete(call)
  }

  stop(): void {
    clearTimeout(this.timer)
    this.calls.clear()
    this.health.forget(this.worker.id)
  }

  private scheduleCheck(): void {
    this.timer = setTimeout(() => void this.check(), checkEveryMs)
    this.timer.unref()
  }

  private async check(): Promise<void> {
    const isNeeded = this.calls.size > 0 || (this.isSilent && this.checksLeft-- > 0)
    if (!isNeeded) return this.stop()
    const askedAt = performance.now()
    const { answer: answerMs, last } = this.health.livenessTimeouts
    const before = sleep(answerMs - last, undefined, { ref: false }).then(() => this.bytesOfCalls())
    // Refused and broken connections make the calls fail directly, so only silence matters here.
    const answer = await checkLiveness(this.worker, this.health.agent, answerMs)
    const isSilent = answer === 'silent' && !this.hasMovedSince(await before)
    // A check during which the event loop stalled proves nothing.
    if (isSilent && wasStalled(askedAt)) return this.scheduleCheck()
    this.isSilent = isSilent
    if (isSilent) this.notifyCalls()
    else this.checksLeft = maxIdleChecks
    this.scheduleCheck()
  }

  private bytesOfCalls(): [call: () => void, bytes: number][] {
    return [...this.calls].map(([call, bytesMoved]) => [call, bytesMoved()])
  }

  private hasMovedSince(before: [call: () => void, bytes: number][]): boolean {
    return before.some(([call, bytes]) => (this.calls.get(call)?.() ?? 0) > bytes)
  }

  private notifyCalls(): void {
    if (this.calls.size > 0)
      this.health.log.warn(
        { worker: this.worker.id, calls: this.calls.size },
        'a worker stopped responding, so its calls are lost',
      )
    for (const call of this.calls.keys()) call()
    this.calls.clear()
  }
}
