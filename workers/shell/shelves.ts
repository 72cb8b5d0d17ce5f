/** The slots that wait for a command, by their sandbox. */
import type { PodName } from '../drivers/driver.ts'
import type { Slot } from './slot.ts'

/** A sandbox has one slot more than commands were started in this time (milliseconds), and at most {@link mostOfSandbox}. */
const burstMs = 3_000
const mostOfSandbox = 3

export interface SlotOpening {
  slot: Promise<Slot>
  /** A command waits for it, so it is not kept. */
  isTaken: boolean
}

/** The slots of one sandbox, or of a warm pod under its name until it is claimed. */
export interface Shelf {
  sandboxId: string
  pod: PodName
  idle: Set<Slot>
  /** Oldest first. */
  openings: Set<SlotOpening>
  /** When the last commands were started, oldest first. */
  takes: number[]
  timer: NodeJS.Timeout
}

/** Whether the sandbox should have another slot than those that are there and that are being opened. */
export function isShort(shelf: Shelf): boolean {
  const now = performance.now()
  while (shelf.takes.length > 0 && now - shelf.takes[0]! > burstMs) shelf.takes.shift()
  const coming = [...shelf.openings].filter(({ isTaken }) => !isTaken).length
  return shelf.idle.size + coming < Math.min(1 + shelf.takes.length, mostOfSandbox)
}

export class Shelves {
  private readonly bySandbox = new Map<string, Shelf>()
  /** The waiting slots of all sandboxes, oldest first, each with its shelf. */
  private readonly waiting = new Map<Slot, Shelf>()
  private isClosed = false
  private readonly idleMs: number
  private readonly most: number

  /**
   * @param idleMs after a sandbox's last use, until its slots are closed
   * @param most slots of all sandboxes that may wait; the oldest make room
   */
  constructor(idleMs: number, most: number) {
    this.idleMs = idleMs
    this.most = most
  }

  /** The sandbox's own, emptied where its slots were of another pod. */
  of(sandboxId: string, pod: PodName): Shelf {
    const known = this.bySandbox.get(sandboxId) ?? this.claim(sandboxId, pod.name)
    if (known && known.pod.uid === pod.uid) return known
    if (known) this.clear(known)
    const made: Shelf = {
      sandboxId,
      pod,
      idle: new Set(),
      openings: new Set(),
      takes: [],
      timer: setTimeout(() => this.clear(made), this.idleMs).unref(),
    }
    this.bySandbox.set(sandboxId, made)
    return made
  }

  find = (sandboxId: string): Shelf | undefined => this.bySandbox.get(sandboxId)

  isCurrent = (shelf: Shelf): boolean => !this.isClosed && this.find(shelf.sandboxId) === shelf

  keep(shelf: Shelf, slot: Slot) {
    // All tries for a slow sandbox may answer in the end; those beyond the limit would be idle processes.
    if (shelf.idle.size >= mostOfSandbox || !this.isCurrent(shelf)) return slot.close()
    shelf.idle.add(slot)
    this.waiting.set(slot, shelf)
    // Its user may end it, its node may die, its connection may break: then it must not be given to a command.
    void slot.closed.then(() => this.remove(slot))
    const [oldest] = this.waiting.keys()
    if (this.waiting.size > this.most && oldest) this.discard(oldest)
  }

  /** It is given to a command, or has ended. */
  remove(slot: Slot): void {
    this.waiting.get(slot)?.idle.delete(slot)
    this.waiting.delete(slot)
  }

  clear(shelf: Shelf): void {
    clearTimeout(shelf.timer)
    if (this.find(shelf.sandboxId) === shelf) this.bySandbox.delete(shelf.sandboxId)
    for (const slot of shelf.idle) this.discard(slot)
  }

  close(): void {
    this.isClosed = true
    for (const shelf of this.bySandbox.values()) this.clear(shelf)
  }

  /** Gives the slots of a warm pod to the sandbox that claimed it. */
  private claim(sandboxId: string, podName: string): Shelf | undefined {
    const shelf = this.bySandbox.get(podName)
    if (!shelf) return undefined
    this.bySandbox.delete(podName)
    shelf.sandboxId = sandboxId
    this.bySandbox.set(sandboxId, shelf)
    return shelf
  }

  private discard(slot: Slot): void {
    this.remove(slot)
    slot.close()
  }
}
