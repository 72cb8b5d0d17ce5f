/**
 * Keeps the idle slots of sandboxes. On Kubernetes, also opens slots ahead of time for sandboxes that are in
 * use or have just become ready, because opening a slot accounts for about 50 ms of the 60 ms that a command
 * takes (`bench/slots.ts`, `bench/exec.ts`).
 */
import pLimit from 'p-limit'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Metrics } from '../../shared/platform/metrics.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import { openSlot, type Slot } from './slot.ts'

/**
 * Period for which a sandbox's used-up slots are counted. The pool keeps one slot more than that number ready
 * for the sandbox, up to {@link maxPerSandbox}.
 */
const burstMs = 3_000
const maxPerSandbox = 3
/**
 * Time for which the worker must neither start nor end a command before the next slot is opened, because
 * opening a slot halves the speed of a running command on a small node.
 */
const quietMs = 100
/** Time after which the next slot is opened even if commands keep starting or ending. */
const maxRefillDelayMs = 1_000
/** After a command, the next slot is opened immediately if the previous command started within this time. */
const rapidMs = 500
/**
 * Maximum number of slots being opened ahead of time, because opening a slot costs the node about 30 ms of
 * work.
 */
const maxOpening = 4

export interface SlotPoolOptions {
  driver: Driver
  log: Logger
  metrics: Pick<Metrics, 'slots' | 'slotsWaiting'>
  idleMs?: number
  /** Maximum number of idle slots, beyond which the oldest are closed. */
  max?: number
  /** Time after which a second slot is opened for a command whose slot does not respond. */
  silentMs?: number
}

/**
 * The slots of a sandbox or a warm pod. A warm pod's slots are stored under the pod's name until the pod is
 * claimed.
 */
interface SandboxSlots {
  sandboxId: string
  pod: PodName
  idle: Set<Slot>
  /** Slots that are being opened for no particular command, oldest first. */
  opening: Set<Promise<Slot>>
  queued: number
  /** Slots that commands have taken. A slot is given back or used up. */
  taken: Set<Slot>
  takenAt: number
  usedUpAt: number[]
  timer: NodeJS.Timeout
}

function recent(times: number[]): number[] {
  const oldest = performance.now() - burstMs
  return times.filter((at) => at > oldest)
}

export class SlotPool {
  private readonly options: Required<SlotPoolOptions>
  private readonly bySandbox = new Map<string, SandboxSlots>()
  private readonly idle = new Map<Slot, SandboxSlots>()
  private readonly openAhead = pLimit(maxOpening)
  private readonly unfilled = new Set<SandboxSlots>()
  private readonly quiet = setTimeout(() => this.fillAll(), quietMs).unref()
  private isClosed = false

  constructor(options: SlotPoolOptions) {
    const silentMs = options.driver.livenessTimeouts.slot
    this.options = { idleMs: 60_000, max: 500, silentMs, ...options }
  }

  /**
   * Returns an idle slot, a slot that is being opened, or a new slot.
   * @throws the errors of {@link openSlot}
   */
  async take(sandboxId: string, pod: PodName): Promise<{ slot: Slot; warm: boolean }> {
    const slots = this.slotsOf(sandboxId, pod)
    slots.timer.refresh()
    const now = performance.now()
    const isRapid = now - slots.takenAt < rapidMs
    slots.takenAt = now
    const [slot] = slots.idle
    this.options.metrics.slots.inc({ outcome: slot ? 'warm' : 'cold' })
    try {
      if (slot) this.remove(slot)
      const taken = slot ?? (await this.openNow(slots))
      slots.taken.add(taken)
      return { slot: taken, warm: slot !== undefined }
    } finally {
      if (isRapid) this.fill(slots)
      else this.fillLater(slots)
    }
  }

  /** Makes a slot that can run another command available again. */
  giveBack(sandboxId: string, slot: Slot): void {
    const slots = this.bySandbox.get(sandboxId)
    if (slots?.taken.delete(slot)) this.keep(slots, slot)
    else slot.close()
    this.quiet.refresh()
  }

  private fillLater(slots: SandboxSlots): void {
    this.unfilled.add(slots)
    this.quiet.refresh()
    setTimeout(() => this.unfilled.delete(slots) && this.fill(slots), maxRefillDelayMs).unref()
  }

  private fillAll(): void {
    for (const slots of this.unfilled) this.fill(slots)
    this.unfilled.clear()
  }

  prepare(sandboxId: string, pod: PodName): void {
    const slots = this.slotsOf(sandboxId, pod)
    slots.timer.refresh()
    this.fill(slots)
  }

  adopt(sandboxId: string, pod: PodName, slot: Slot): void {
    const slots = this.slotsOf(sandboxId, pod)
    this.follow(slots, slot)
    this.keep(slots, slot)
  }

  ready = (sandboxId: string): number => this.bySandbox.get(sandboxId)?.idle.size ?? 0

  has = (sandboxId: string): boolean => this.bySandbox.has(sandboxId)

  drop(sandboxId: string): void {
    const slots = this.bySandbox.get(sandboxId)
    if (slots) this.clear(slots)
  }

  close(): void {
    this.isClosed = true
    for (const slots of this.bySandbox.values()) this.clear(slots)
  }

  /**
   * Returns a sandbox's slots, including the slots of the warm pod that it has claimed. Closes the slots of
   * any earlier pod.
   */
  private slotsOf(sandboxId: string, pod: PodName): SandboxSlots {
    const existing = this.bySandbox.get(sandboxId) ?? this.bySandbox.get(pod.name)
    if (existing && existing.pod.uid === pod.uid) {
      this.bySandbox.delete(existing.sandboxId)
      existing.sandboxId = sandboxId
      this.bySandbox.set(sandboxId, existing)
      return existing
    }
    if (existing) this.clear(existing)
    const slots: SandboxSlots = {
      sandboxId,
      pod,
      idle: new Set(),
      opening: new Set(),
      queued: 0,
      taken: new Set(),
      takenAt: Number.NEGATIVE_INFINITY,
      usedUpAt: [],
      timer: setTimeout(() => this.clear(slots), this.options.idleMs).unref(),
    }
    this.bySandbox.set(sandboxId, slots)
    return slots
  }

  private clear(slots: SandboxSlots): void {
    clearTimeout(slots.timer)
    if (this.bySandbox.get(slots.sandboxId) === slots) this.bySandbox.delete(slots.sandboxId)
    for (const slot of slots.idle) this.discard(slot)
  }

  private isCurrent = (slots: SandboxSlots): boolean =>
    !this.isClosed && this.bySandbox.get(slots.sandboxId) === slots

  private keep(slots: SandboxSlots, slot: Slot): void {
    // For a slow sandbox, several attempts may succeed late.
    if (slot.isClosed || slots.idle.size >= maxPerSandbox || !this.isCurrent(slots)) {
      slot.close()
      return
    }
    slots.idle.add(slot)
    this.idle.set(slot, slots)
    const [oldest] = this.idle.keys()
    if (this.idle.size > this.options.max && oldest) this.discard(oldest)
    this.options.metrics.slotsWaiting.set(this.idle.size)
  }

  private async open(slots: SandboxSlots): Promise<Slot> {
    const slot = await openSlot(this.options.driver, slots.pod)
    this.follow(slots, slot)
    return slot
  }

  /** A slot also closes if its user killed the shell, or its node or connection failed. */
  private follow(slots: SandboxSlots, slot: Slot): void {
    void slot.closed.then(() => {
      this.remove(slot)
      if (!slots.taken.delete(slot)) return
      slots.usedUpAt = [...recent(slots.usedUpAt), performance.now()]
      this.fillLater(slots)
    })
  }

  private remove(slot: Slot): void {
    this.idle.get(slot)?.idle.delete(slot)
    this.idle.delete(slot)
    this.options.metrics.slotsWaiting.set(this.idle.size)
  }

  private discard(slot: Slot): void {
    this.remove(slot)
    slot.close()
  }

  private isShort(slots: SandboxSlots): boolean {
    const { idle, opening, queued, usedUpAt } = slots
    return idle.size + opening.size + queued < Math.min(1 + recent(usedUpAt).length, maxPerSandbox)
  }

  /** Opens a sandbox's missing slots. If this fails, the next command retries it and reports any error. */
  private fill(slots: SandboxSlots): void {
    if (!this.options.driver.startsSlowly) return
    while (this.isCurrent(slots) && this.isShort(slots)) {
      slots.queued++
      void this.openAhead(() => this.openFor(slots))
    }
  }

  private async openFor(slots: SandboxSlots): Promise<void> {
    slots.queued--
    if (!this.isCurrent(slots) || !this.isShort(slots)) return
    const opening = this.open(slots)
    slots.opening.add(opening)
    try {
      const slot = await opening
      // The slot is no longer in the set if a command has taken it.
      if (slots.opening.delete(opening)) this.keep(slots, slot)
    } catch (error) {
      slots.opening.delete(opening)
      const { sandboxId, idle } = slots
      this.options.log.debug({ err: error, sandbox_id: sandboxId }, 'a slot was not opened ahead of time')
      if (error instanceof PodGone || idle.size === 0) this.clear(slots)
    }
  }

  /**
   * Takes a slot that is being opened, or opens a new one. If the slot does not respond in time, opens
   * another.
   * @throws the error from the last attempt
   */
  private async openNow(slots: SandboxSlots): Promise<Slot> {
    const [ahead] = slots.opening
    if (ahead) slots.opening.delete(ahead)
    const open = () => this.open(slots)
    const first = ahead?.catch(open) ?? open()
    const inTime = await withTimeout(this.options.silentMs, first)
    if (inTime) return inTime
    const second = open()
    const used = await Promise.any([first, second]).catch(() => second)
    for (const each of [first, second]) {
      void each.then((slot) => slot !== used && this.keep(slots, slot)).catch(() => {})
    }
    return used
  }
}
