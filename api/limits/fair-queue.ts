/**
 * A queue for work that only a few may do at once. Waiters take turns by the network they come from, so a crowd from
 * one network waits behind itself. Work that would wait too long is refused at once.
 */
import { addAbortListener } from 'node:events'
import { append, type Turns, takeFirst } from '../../shared/lib/turns.ts'
import { unavailable } from '../../shared/platform/problem.ts'

export interface Waiter {
  /** The network that it comes from, however many addresses that has. */
  group: string
  /** Whether it comes from a known client. Half of all turns are for those, if they need them. */
  isKnown: boolean
  /** Aborting it removes the waiter from the queue. */
  signal?: AbortSignal
}

interface Turn {
  group: string
  begin(): void
  refuse(): void
}

/** One of the two lines of the queue: for known clients, and for the others. */
type Lane = Turns<Turn>

/** The most waiters, however quick the work is: each holds a connection and a body. */
const mostWaiting = 50
/** The longest wait of the last in a lane, in milliseconds, judged by how long the last runs took. */
const mostWaitMs = 4_000
/** The usual time is the mean of about this many runs. */
const remembered = 8

export class FairQueue {
  private readonly lanes: { known: Lane; others: Lane } = { known: new Map(), others: new Map() }
  private readonly atOnce: number
  private running = 0
  private usualMs = 0
  private turnOf: 'known' | 'others' = 'known'

  /** @param atOnce how many may be at work */
  constructor(atOnce: number) {
    this.atOnce = atOnce
  }

  /** @throws {Problem} `unavailable` when too many wait already */
  async run<T>(waiter: Waiter, work: () => Promise<T>): Promise<T> {
    if (this.running < this.atOnce) this.running++
    else await this.line(waiter)
    const startedAt = performance.now()
    try {
      return await work()
    } finally {
      this.leave(performance.now() - startedAt)
    }
  }

  private line({ group, isKnown, signal }: Waiter): Promise<void> {
    return new Promise((begin, reject) => {
      const lane = isKnown ? this.lanes.known : this.lanes.others
      const turn = { group, begin, refuse: () => reject(crowded()) }
      append(lane, group, turn)
      if (signal) addAbortListener(signal, () => remove(lane, turn) && turn.refuse())
      const waiting = [...lane.values()].reduce((sum, turns) => sum + turns.length, 0)
      if (waiting > this.room()) dropLast(lane)
    })
  }

  /** There is room for as many waiters as can be at work: they wait no longer than one run. */
  private room(): number {
    return Math.max(
      this.atOnce,
      Math.min(mostWaiting, (mostWaitMs * this.atOnce) / Math.max(this.usualMs, 1)),
    )
  }

  /** The next waiter gets the free turn directly, so that nobody slips in between. */
  private leave(tookMs: number): void {
    this.usualMs += (tookMs - this.usualMs) / (this.usualMs === 0 ? 1 : remembered)
    const turn = this.next()
    if (turn) turn.begin()
    else this.running--
  }

  private next(): Turn | undefined {
    const other = this.turnOf === 'known' ? 'others' : 'known'
    const lane = this.lanes[this.turnOf].size > 0 ? this.turnOf : other
    this.turnOf = lane === 'known' ? 'others' : 'known'
    return takeFirst(this.lanes[lane])
  }
}

const crowded = () => unavailable('Too many sign-ups and logins are going on. Try again in a moment.')

/** Removes the newest waiter of the largest group; of groups of one size, the last. Those who have waited longer stay. */
function dropLast(lane: Lane): void {
  let longest: Turn[] = []
  for (const turns of lane.values()) if (turns.length >= longest.length) longest = turns
  const turn = longest.at(-1)
  if (turn && remove(lane, turn)) turn.refuse()
}

function remove(lane: Lane, turn: Turn): boolean {
  const turns = lane.get(turn.group)
  const at = turns?.indexOf(turn) ?? -1
  if (!turns || at < 0) return false
  turns.splice(at, 1)
  if (turns.length === 0) lane.delete(turn.group)
  return true
}
