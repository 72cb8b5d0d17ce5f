/**
 * Slots that are opened ahead of time, so that a command finds one: for a sandbox that has just become ready, and for
 * one in use. On Kubernetes opening a slot is the slow part of a command, some 50 ms of 60; the local driver starts a
 * process in 2 ms and needs none. Nothing relies on them: a command that finds no slot opens one. `bench/slots.ts` and
 * `bench/exec.ts` measure it.
 */

import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Metrics } from '../../shared/platform/metrics.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import { isShort, type Shelf, Shelves, type SlotOpening } from './shelves.ts'
import { openSlot, type Slot } from './slot.ts'

/**
 * Milliseconds. On a small node, opening a slot beside a command makes that half as quick. So the next slot waits until
 * no command was started for `quietMs`, at most `mostDelayMs`. Where commands of a sandbox follow within `closelyMs` it
 * is opened at once.
 */
const quietMs = 40
const mostDelayMs = 200
const closelyMs = 500
/** Slots that are opened ahead at a time. Each costs the node some 30 ms of work, which would slow down waiting commands. */
const atOnce = 4

export interface SlotPoolOptions {
  driver: Driver
  log: Logger
  metrics: Pick<Metrics, 'slots' | 'slotsWaiting'>
  /** Milliseconds after a sandbox's last use until its slots are closed. */
  idleMs?: number
  /** Slots of all sandboxes that may wait; the oldest make room. */
  most?: number
  /** Milliseconds of silence after which a second slot is opened for a command: a dead connection is silent for ever. */
  silentMs?: number
}

export class SlotPool {
  private readonly driver: Driver
  private readonly options: SlotPoolOptions
  private readonly silentMs: number
  private readonly shelves: Shelves
  /** Shelves that want a slot, first come first served. */
  private readonly wanting = new Set<Shelf>()
  private openings = 0
  private lastTake = 0

  constructor(options: SlotPoolOptions) {
    const { driver, idleMs = 60_000, most = 500, silentMs = driver.silence.slot } = options
    this.driver = driver
    this.options = options
    this.silentMs = silentMs
    this.shelves = new Shelves(idleMs, most, (waiting) => options.metrics.slotsWaiting.set(waiting))
  }

  /**
   * Takes a slot for one command: a waiting one, one that is being opened, or a new one.
   * @throws what {@link openSlot} throws
   */
  async take(sandboxId: string, pod: PodName): Promise<{ slot: Slot; warm: boolean }> {
    // Where starting a process is quick, no slot is kept or counted.
    if (!this.driver.startsSlowly) return { slot: await openSlot(this.driver, pod), warm: false }
    const shelf = this.shelves.of(sandboxId, pod)
    shelf.timer.refresh()
    shelf.takes.push(performance.now())
    const [slot] = shelf.idle
    this.options.metrics.slots.inc({ outcome: slot ? 'warm' : 'cold' })
    try {
      if (!slot) return { slot: await this.openPatiently(shelf), warm: false }
      this.shelves.remove(slot)
      return { slot, warm: true }
    } finally {
      this.refill(shelf)
    }
  }

  prepare(sandboxId: string, pod: PodName): void {
    if (!this.driver.startsSlowly) return
    const shelf = this.shelves.of(sandboxId, pod)
    shelf.timer.refresh()
    this.fill(shelf)
  }

  /** Keeps an unused slot that was opened for another purpose. */
  adopt = (sandboxId: string, pod: PodName, slot: Slot): void =>
    this.shelves.keep(this.shelves.of(sandboxId, pod), slot)

  /** How many slots wait for its next commands. */
  ready = (sandboxId: string): number => this.shelves.find(sandboxId)?.idle.size ?? 0

  has = (sandboxId: string): boolean => this.shelves.find(sandboxId) !== undefined

  /** The sandbox has ended. */
  drop(sandboxId: string): void {
    const shelf = this.shelves.find(sandboxId)
    if (shelf) this.shelves.clear(shelf)
  }

  close = (): void => this.shelves.close()

  /** Opens the next slots, after a command was given one. */
  private refill(shelf: Shelf): void {
    this.lastTake = performance.now()
    const before = shelf.takes.at(-2)
    if (before !== undefined && this.lastTake - before < closelyMs) this.fill(shelf)
    else this.fillWhenQuiet(shelf, this.lastTake + mostDelayMs)
  }

  private fillWhenQuiet(shelf: Shelf, latest: number): void {
    const waitMs = Math.min(this.lastTake + quietMs, latest) - performance.now()
    if (waitMs <= 0) this.fill(shelf)
    else setTimeout(() => this.fillWhenQuiet(shelf, latest), waitMs)
  }

  private fill(shelf: Shelf): void {
    if (!this.isWanting(shelf)) return
    this.wanting.add(shelf)
    this.openWanted()
  }

  private isWanting = (shelf: Shelf): boolean => this.shelves.isCurrent(shelf) && isShort(shelf)

  private openWanted(): void {
    for (const shelf of this.wanting) {
      if (this.openings >= atOnce) return
      this.wanting.delete(shelf)
      if (!this.isWanting(shelf)) continue
      void this.openFor(shelf)
      // Tried again after all the others.
      if (isShort(shelf)) this.wanting.add(shelf)
    }
  }

  private async openFor(shelf: Shelf): Promise<void> {
    const opening: SlotOpening = { slot: this.open(shelf.pod), isTaken: false }
    shelf.openings.add(opening)
    try {
      const slot = await opening.slot
      shelf.openings.delete(opening)
      if (!opening.isTaken) this.shelves.keep(shelf, slot)
      this.fill(shelf)
    } catch (error) {
      shelf.openings.delete(opening)
      this.giveUp(shelf, error)
    }
  }

  /** Not tried again before the next command, which will tell its client what is wrong. */
  private giveUp(shelf: Shelf, error: unknown): void {
    this.options.log.debug({ err: error, sandbox_id: shelf.sandboxId }, 'a slot was not opened ahead of time')
    if (error instanceof PodGone || shelf.idle.size === 0) this.shelves.clear(shelf)
  }

  /** Opens a slot at once. Slots ahead of time wait for those of commands. */
  private async open(pod: PodName): Promise<Slot> {
    this.openings += 1
    try {
      return await openSlot(this.driver, pod)
    } finally {
      this.openings -= 1
      this.openWanted()
    }
  }

  /**
   * The slot that is being opened ahead of time, or a new one. After a silence a second one is opened beside it.
   * @throws why the last one failed
   */
  private async openPatiently(shelf: Shelf): Promise<Slot> {
    const first = this.join(shelf) ?? this.open(shelf.pod)
    const inTime = await withTimeout(this.silentMs, first)
    if (inTime) return inTime
    const second = this.open(shelf.pod)
    const used = await Promise.any([first, second]).catch(() => second)
    for (const each of [first, second]) {
      void each.then((slot) => slot !== used && this.shelves.keep(shelf, slot)).catch(() => {})
    }
    return used
  }

  private join(shelf: Shelf): Promise<Slot> | undefined {
    const opening = [...shelf.openings].find(({ isTaken }) => !isTaken)
    if (!opening) return undefined
    opening.isTaken = true
    return opening.slot.catch(() => this.open(shelf.pod))
  }
}
