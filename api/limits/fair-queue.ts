/**
 * A round-robin queue for password hashes, of which only a few may run at the same time. Clients are served in rotation
 * by network, so a crowd from one network waits behind itself.
 */
import { addAbortListener } from 'node:events'
import { append, type RoundRobinQueue, takeFirst } from '../../shared/lib/round-robin-queue.ts'
import { unavailable } from '../../shared/platform/problem.ts'

export interface Waiter {
  /** The network of the client, however many addresses it has. */
  group: string
  /** Whether it is a known client. Half of the capacity is for those, if they need it. */
  isKnown: boolean
  /** Aborting it removes the waiter from the queue. */
  signal?: AbortSignal
}

interface Turn {
  group: string
  begin(): void
  refuse(): void
}

/** Known clients and the others wait apart. */
type Lane = RoundRobinQueue<Turn>

/** Waiters of a lane for each that may run: nobody waits longer than ten hashes take, usually 4 s. */
const maxWaitingPerRunning = 10

export class FairQueue {
  private readonly lanes: { known: Lane; others: Lane } = { known: new Map(), others: new Map() }
  private readonly maxRunning: number
  private running = 0
  private nextLane: 'known' | 'others' = 'known'

  constructor(maxRunning: number) {
    this.maxRunning = maxRunning
  }

  /** @throws {Problem} `unavailable` when too many wait already */
  async run<T>(waiter: Waiter, work: () => Promise<T>): Promise<T> {
    if (this.running < this.maxRunning) this.running++
    else await this.wait(waiter)
    try {
      return await work()
    } finally {
      // The next waiter starts before a new one can take its place.
      const turn = this.next()
      if (turn) turn.begin()
      else this.running--
    }
  }

  private wait({ group, isKnown, signal }: Waiter): Promise<void> {
    return new Promise((begin, reject) => {
      const lane = isKnown ? this.lanes.known : this.lanes.others
      const turn = { group, begin, refuse: () => reject(crowded()) }
      append(lane, group, turn)
      if (signal) addAbortListener(signal, () => remove(lane, turn) && turn.refuse())
      const waiting = [...lane.values()].reduce((sum, turns) => sum + turns.length, 0)
      if (waiting > maxWaitingPerRunning * this.maxRunning) dropLast(lane)
    })
  }

  private next(): Turn | undefined {
    const other = this.nextLane === 'known' ? 'others' : 'known'
    const lane = this.lanes[this.nextLane].size > 0 ? this.nextLane : other
    this.nextLane = lane === 'known' ? 'others' : 'known'
    return takeFirst(this.lanes[lane])
  }
}

const crowded = () => unavailable('Too many sign-ups and logins are going on. Try again in a moment.')

/** Refuses the newest waiter of the largest group; among groups of one size, of the last one. */
function dropLast(lane: Lane): void {
  let largest: Turn[] = []
  for (const turns of lane.values()) if (turns.length >= largest.length) largest = turns
  const turn = largest.at(-1)
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
