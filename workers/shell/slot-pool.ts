/**
 * Slots that are opened ahead of time, so that a command finds one: for a sandbox that has just become ready, and for
 * one in use. On Kubernetes opening a slot is the slow part of a command, some 50 ms of 60; the local driver starts a
 * process in 2 ms and needs none. Nothing relies on them: a command that finds no slot opens one. `bench/slots.ts` and
 * `bench/exec.ts` measure it.
 */

import pLimit from 'p-limit'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Metrics } from '../../shared/platform/metrics.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import { openSlot, type Slot } from './slot.ts'

/** A sandbox has one slot more than commands were started in this time (milliseconds), and at most {@link maxOfSandbox}. */
const burstMs = 3_000
const maxOfSandbox = 3
/**
 * Milliseconds until the next slot is opened. On a small node, opening one during a command makes that half as fast.
 * Where commands of a sandbox follow within `closelyMs`, the next slot is opened immediately.
 */
const refillDelayMs = 100
const closelyMs = 500
/** Slots that are opened ahead concurrently. Each costs the node some 30 ms of work, which slows down waiting commands. */
const maxOpening = 4

export interface SlotPoolOptions {
  driver: Driver
  log: Logger
  metrics: Pick<Metrics, 'slots' | 'slotsWaiting'>
  /** Milliseconds after a sandbox's last use until its slots are closed. */
  idleMs?: number
  /** Idle slots of all sandboxes; beyond it the oldest are closed. */
  max?: number
  /** Milliseconds without an answer after which a second slot is opened for a command: a dead connection never answers. */
  silentMs?: number
}

/** The slots of one sandbox, or of a warm pod under its name until it is claimed. */
interface SandboxSlots {
  sandboxId: string
  pod: PodName
  idle: Set<Slot>
  /** Those that no command waits for, oldest first. */
  opening: Set<Promise<Slot>>
  /** How many wait until fewer than {@link maxOpening} are being opened. */
  queued: number
  /** When the last commands were started, oldest first. */
  takes: number[]
  timer: NodeJS.Timeout
}

export class SlotPool {
  private readonly driver: Driver
  private readonly options: SlotPoolOptions
  private readonly idleMs: number
  private readonly max: number
  private readonly silentMs: number
  private readonly bySandbox = new Map<string, SandboxSlots>()
  /** The idle slots of all sandboxes, oldest first. */
  private readonly idle = new Map<Slot, SandboxSlots>()
  private readonly openAhead = pLimit(maxOpening)
  private isClosed = false

  constructor(options: SlotPoolOptions) {
    const { driver, idleMs = 60_000, max = 500, silentMs = driver.livenessTimeouts.slot } = options
    this.driver = driver
    this.options = options
    this.idleMs = idleMs
    this.max = max
    this.silentMs = silentMs
  }

  /**
   * Takes a slot for one command: an idle one, one that is being opened, or a new one.
   * @throws what {@link openSlot} throws
   */
  async take(sandboxId: string, pod: PodName): Promise<{ slot: Slot; warm: boolean }> {
    // Where starting a process is quick, no slot is kept or counted.
    if (!this.driver.startsSlowly) return { slot: await openSlot(this.driver, pod), warm: false }
    const slots = this.slotsOf(sandboxId, pod)
    slots.timer.refresh()
    const now = performance.now()
    const isSoon = now - (slots.takes.at(-1) ?? Number.NEGATIVE_INFINITY) < closelyMs
    slots.takes = [...slots.takes.filter((at) => now - at < burstMs), now]
    const [slot] = slots.idle
    this.options.metrics.slots.inc({ outcome: slot ? 'warm' : 'cold' })
    try {
      if (!slot) return { slot: await this.openNow(slots), warm: false }
      this.remove(slot)
      return { slot, warm: true }
    } finally {
      if (isSoon) this.fill(slots)
      else setTimeout(() => this.fill(slots), refillDelayMs).unref()
    }
  }

  prepare(sandboxId: string, pod: PodName): void {
    if (!this.driver.startsSlowly) return
    const slots = this.slotsOf(sandboxId, pod)
    slots.timer.refresh()
    this.fill(slots)
  }

  /** Keeps an unused slot that was opened for another purpose. */
  adopt = (sandboxId: string, pod: PodName, slot: Slot): void => this.keep(this.slotsOf(sandboxId, pod), slot)

  /** Returns how many slots are idle. */
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

  /** Slots of another pod are closed. A sandbox takes over those of the warm pod that it has claimed. */
  private slotsOf(sandboxId: string, pod: PodName): SandboxSlots {
    const known = this.bySandbox.get(sandboxId) ?? this.bySandbox.get(pod.name)
    if (known && known.pod.uid === pod.uid) {
      this.bySandbox.delete(known.sandboxId)
      known.sandboxId = sandboxId
      this.bySandbox.set(sandboxId, known)
      return known
    }
    if (known) this.clear(known)
    const slots: SandboxSlots = {
      sandboxId,
      pod,
      idle: new Set(),
      opening: new Set(),
      queued: 0,
      takes: [],
      timer: setTimeout(() => this.clear(slots), this.idleMs).unref(),
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
    // All tries for a slow sandbox may answer in the end; those beyond the limit would be idle processes.
    if (slots.idle.size >= maxOfSandbox || !this.isCurrent(slots)) {
      slot.close()
      return
    }
    slots.idle.add(slot)
    this.idle.set(slot, slots)
    // Its user may end it, its node may die, its connection may break: then no command must get it.
    void slot.closed.then(() => this.remove(slot))
    const [oldest] = this.idle.keys()
    if (this.idle.size > this.max && oldest) this.discard(oldest)
    this.options.metrics.slotsWaiting.set(this.idle.size)
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

  private isShort({ idle, opening, queued, takes }: SandboxSlots): boolean {
    const oldest = performance.now() - burstMs
    const recent = takes.filter((at) => at > oldest).length
    return idle.size + opening.size + queued < Math.min(1 + recent, maxOfSandbox)
  }

  /** Opens slots ahead of time. After a failure this is not repeated before the next command, which reports it. */
  private fill(slots: SandboxSlots): void {
    while (this.isCurrent(slots) && this.isShort(slots)) {
      slots.queued++
      void this.openAhead(() => this.openFor(slots))
    }
  }

  private async openFor(slots: SandboxSlots): Promise<void> {
    slots.queued--
    if (!this.isCurrent(slots) || !this.isShort(slots)) return
    const opening = openSlot(this.driver, slots.pod)
    slots.opening.add(opening)
    try {
      const slot = await opening
      // A command may have taken it.
      if (slots.opening.delete(opening)) this.keep(slots, slot)
    } catch (error) {
      slots.opening.delete(opening)
      const { sandboxId, idle } = slots
      this.options.log.debug({ err: error, sandbox_id: sandboxId }, 'a slot was not opened ahead of time')
      if (error instanceof PodGone || idle.size === 0) this.clear(slots)
    }
  }

  /**
   * Returns the slot that is being opened ahead of time, or a new one. Without an answer a second one is opened too.
   * @throws the reason of the last failure
   */
  private async openNow(slots: SandboxSlots): Promise<Slot> {
    const [ahead] = slots.opening
    if (ahead) slots.opening.delete(ahead)
    const open = () => openSlot(this.driver, slots.pod)
    const first = ahead?.catch(open) ?? open()
    const inTime = await withTimeout(this.silentMs, first)
    if (inTime) return inTime
    const second = open()
    const used = await Promise.any([first, second]).catch(() => second)
    for (const each of [first, second]) {
      void each.then((slot) => slot !== used && this.keep(slots, slot)).catch(() => {})
    }
    return used
  }
}
