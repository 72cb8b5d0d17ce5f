/**
 * Slots that are opened ahead of time, so that a command finds one: for a sandbox that has just become ready, and for
 * one in use. On Kubernetes opening a slot is the slow part of a command, some 50 ms of 60; the local driver starts a
 * process in 2 ms and needs none. Nothing relies on them: a command that finds no slot opens one. `bench/slots.ts` and
 * `bench/exec.ts` measure it.
 */
import type { Logger } from '../../shared/platform/log.ts'
import type { Metrics } from '../../shared/platform/metrics.ts'
import { within } from '../../shared/platform/patience.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import { openSlot, type Slot } from './slot.ts'

/** A sandbox has one slot more than commands were started in this time (milliseconds), and at most {@link mostOfSandbox}. */
const burstMs = 3_000
const mostOfSandbox = 3
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
/** A slot that takes longer than this to open is not waited for: another is likely to be quicker. Milliseconds. */
const usualMs = 150
/**
 * Slots that are opened for one command. A busy node is silent for seconds, and a dead connection for ever, so a
 * command whose slot is silent has another one opened beside it. With 3 s between them that takes less than the API
 * waits.
 */
const mostTries = 3

export interface SlotPool {
  /**
   * Takes a slot for one command: a waiting one, one that is being opened, or a new one.
   * @throws what {@link openSlot} throws
   */
  take(sandboxId: string, pod: PodName): Promise<{ slot: Slot; warm: boolean }>
  /** Opens one in the background. */
  prepare(sandboxId: string, pod: PodName): void
  /** Keeps an unused slot that was opened for another purpose. */
  adopt(sandboxId: string, pod: PodName, slot: Slot): void
  has(sandboxId: string): boolean
  /** The sandbox has ended. */
  drop(sandboxId: string): void
  close(): void
}

interface SlotOpening {
  since: number
  slot: Promise<Slot>
  /** A command waits for it, so it is not kept. */
  isTaken: boolean
}

/** The slots of one sandbox, or of a warm pod under its name until it is claimed. */
interface Shelf {
  sandboxId: string
  pod: PodName
  idle: Set<Slot>
  /** Oldest first. */
  openings: Set<SlotOpening>
  /** When the last commands were started, oldest first. */
  takes: number[]
  timer: NodeJS.Timeout
}

export interface SlotPoolOptions {
  driver: Driver
  log: Logger
  metrics: Pick<Metrics, 'slots'>
  /** Milliseconds after a sandbox's last use until its slots are closed. */
  idleMs?: number
  /** Slots of all sandboxes that may wait; the oldest make room. */
  most?: number
  /** Milliseconds of silence after which another slot is opened for a command. */
  silentMs?: number
}

export function makeSlotPool(options: SlotPoolOptions): SlotPool {
  const { driver, log, metrics, idleMs = 60_000, most = 500, silentMs = 3_000 } = options
  const shelves = new Map<string, Shelf>()
  /** The waiting slots of all sandboxes, oldest first, each with its shelf. */
  const waiting = new Map<Slot, Shelf>()
  /** Shelves that want a slot, first come first served. */
  const wanting = new Set<Shelf>()
  let openings = 0
  let lastTake = 0
  let isClosed = false

  const shelfOf = (sandboxId: string, pod: PodName): Shelf => {
    const known = shelves.get(sandboxId) ?? claim(sandboxId, pod.name)
    if (known && known.pod.uid === pod.uid) return known
    if (known) clear(known)
    const made: Shelf = {
      sandboxId,
      pod,
      idle: new Set(),
      openings: new Set(),
      takes: [],
      timer: setTimeout(() => clear(made), idleMs).unref(),
    }
    shelves.set(sandboxId, made)
    return made
  }

  /** Gives the slots of a warm pod to the sandbox that claimed it. */
  function claim(sandboxId: string, podName: string): Shelf | undefined {
    const shelf = shelves.get(podName)
    if (!shelf) return undefined
    shelves.delete(podName)
    shelf.sandboxId = sandboxId
    shelves.set(sandboxId, shelf)
    return shelf
  }

  const isCurrent = (shelf: Shelf) => shelves.get(shelf.sandboxId) === shelf

  function clear(shelf: Shelf) {
    clearTimeout(shelf.timer)
    if (isCurrent(shelf)) shelves.delete(shelf.sandboxId)
    wanting.delete(shelf)
    for (const slot of shelf.idle) discard(slot)
  }

  function discard(slot: Slot) {
    forget(slot)
    slot.close()
  }

  function forget(slot: Slot) {
    waiting.get(slot)?.idle.delete(slot)
    waiting.delete(slot)
  }

  function keep(shelf: Shelf, slot: Slot) {
    // All tries for a slow sandbox may answer in the end; those beyond the limit would be idle processes.
    const isFull = shelf.idle.size >= mostOfSandbox
    if (isClosed || isFull || !isCurrent(shelf)) return slot.close()
    shelf.idle.add(slot)
    waiting.set(slot, shelf)
    // Its user may end it, its node may die, its connection may break: then it must not be given to a command.
    void slot.closed.then(() => forget(slot))
    const [oldest] = waiting.keys()
    if (waiting.size > most && oldest) discard(oldest)
  }

  const target = (shelf: Shelf, now: number) => {
    while (shelf.takes.length > 0 && now - shelf.takes[0]! > burstMs) shelf.takes.shift()
    return Math.min(1 + shelf.takes.length, mostOfSandbox)
  }

  const isShort = (shelf: Shelf) => {
    const coming = [...shelf.openings].filter(({ isTaken }) => !isTaken).length
    return shelf.idle.size + coming < target(shelf, performance.now())
  }

  function fill(shelf: Shelf) {
    if (isClosed || !isCurrent(shelf) || !isShort(shelf)) return
    wanting.add(shelf)
    openWanted()
  }

  function openWanted() {
    for (const shelf of wanting) {
      if (openings >= atOnce) return
      wanting.delete(shelf)
      if (!isCurrent(shelf) || !isShort(shelf)) continue
      void openFor(shelf)
      // Tried again after all the others.
      if (isShort(shelf)) wanting.add(shelf)
    }
  }

  /** Opens the next slots, after a command was given one. */
  function refill(shelf: Shelf) {
    lastTake = performance.now()
    const before = shelf.takes.at(-2)
    if (before !== undefined && lastTake - before < closelyMs) fill(shelf)
    else fillWhenQuiet(shelf, lastTake + mostDelayMs)
  }

  function fillWhenQuiet(shelf: Shelf, latest: number) {
    const waitMs = Math.min(lastTake + quietMs, latest) - performance.now()
    if (waitMs <= 0) fill(shelf)
    else setTimeout(fillWhenQuiet, waitMs, shelf, latest)
  }

  async function openFor(shelf: Shelf) {
    const opening: SlotOpening = { since: performance.now(), slot: open(shelf.pod), isTaken: false }
    shelf.openings.add(opening)
    try {
      const slot = await opening.slot
      shelf.openings.delete(opening)
      if (!opening.isTaken) keep(shelf, slot)
      fill(shelf)
    } catch (error) {
      shelf.openings.delete(opening)
      giveUp(shelf, error)
    }
  }

  /** Not tried again before the next command, which will tell its client what is wrong. */
  function giveUp(shelf: Shelf, error: unknown) {
    log.debug({ err: error, sandbox_id: shelf.sandboxId }, 'a slot was not opened ahead of time')
    if (error instanceof PodGone || shelf.idle.size === 0) clear(shelf)
  }

  /** Opens a slot for a command at once. Slots ahead of time wait for that. */
  async function open(pod: PodName): Promise<Slot> {
    openings += 1
    try {
      return await openSlot(driver, pod)
    } finally {
      openings -= 1
      openWanted()
    }
  }

  /** Waits for the slot that is being opened, unless a new one is likely to be there first. */
  async function openOrJoin(shelf: Shelf): Promise<Slot> {
    const opening = [...shelf.openings].find(
      ({ isTaken, since }) => !isTaken && performance.now() - since < usualMs,
    )
    if (!opening) return await openPatiently(shelf)
    opening.isTaken = true
    const usual = await unlessLate(usualMs - (performance.now() - opening.since), opening.slot)
    if (usual) return usual
    return await openPatiently(shelf, [opening.slot])
  }

  /** The first of several tries that answers. @throws why the last one failed */
  async function openPatiently(shelf: Shelf, tries: Promise<Slot>[] = []): Promise<Slot> {
    for (let tried = 1; ; tried++) {
      const began = performance.now()
      const own = open(shelf.pod)
      tries.push(own)
      const first = Promise.any(tries)
      const slot = await (tried < mostTries ? unlessLate(silentMs, first) : first.catch(() => own))
      if (slot) {
        keepOthers(shelf, tries, slot)
        return slot
      }
      // That was not silence but a refusal.
      if (performance.now() - began < silentMs / 2) return await own
    }
  }

  function keepOthers(shelf: Shelf, tries: Promise<Slot>[], used: Slot) {
    for (const other of tries) void other.then((slot) => slot !== used && keep(shelf, slot)).catch(() => {})
  }

  return {
    async take(sandboxId, pod) {
      // Where starting a process is quick, no slot is kept or counted.
      if (!driver.startsSlowly) return { slot: await openSlot(driver, pod), warm: false }
      const shelf = shelfOf(sandboxId, pod)
      shelf.timer.refresh()
      shelf.takes.push(performance.now())
      const [slot] = shelf.idle
      metrics.slots.inc({ outcome: slot ? 'warm' : 'cold' })
      try {
        if (!slot) return { slot: await openOrJoin(shelf), warm: false }
        forget(slot)
        return { slot, warm: true }
      } finally {
        refill(shelf)
      }
    },
    prepare(sandboxId, pod) {
      if (!driver.startsSlowly) return
      const shelf = shelfOf(sandboxId, pod)
      shelf.timer.refresh()
      fill(shelf)
    },
    adopt(sandboxId, pod, slot) {
      keep(shelfOf(sandboxId, pod), slot)
    },
    has: (sandboxId) => shelves.has(sandboxId),
    drop(sandboxId) {
      const shelf = shelves.get(sandboxId)
      if (shelf) clear(shelf)
    },
    close() {
      isClosed = true
      for (const shelf of shelves.values()) clear(shelf)
    },
  }
}

/** @returns undefined when the work has failed or is late; the caller then tries another way */
const unlessLate = <T>(ms: number, work: Promise<T>) =>
  within(
    ms,
    work.catch(() => undefined),
  )
