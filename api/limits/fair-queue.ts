/**
 * A queue that alternates between client networks, so that one network cannot delay the password hashes of
 * the others.
 */
import { addAbortListener } from 'node:events'
import { append, type RoundRobinQueue, takeFirst } from '../../shared/lib/round-robin-queue.ts'
import { unavailable } from '../../shared/platform/problem.ts'

export interface Waiter {
  /** The client's network. */
  group: string
  /** Whether the client has logged in before. Half of the capacity is reserved for known clients. */
  isKnown: boolean
  signal?: AbortSignal
}

interface Waiting {
  group: string
  begin(): void
  refuse(): void
}

type Lane = RoundRobinQueue<Waiting>

/**
 * Maximum length of a lane (known clients or others), as a multiple of the number of concurrent hashes. The
 * last request in a full lane usually waits 4 s.
 */
const maxWaitingPerRunning = 10

export class FairQueue {
  private readonly lanes: { known: Lane; others: Lane } = { known: new Map(), others: new Map() }
  private readonly maxRunning: number
  private running = 0
  private nextLane: 'known' | 'others' = 'known'

  constructor(maxRunning: number) {
    this.maxRunning = maxRunning
  }

  /** @throws {Problem} `unavailable` if the queue is full */
  async run<T>(waiter: Waiter, work: () => Promise<T>): Promise<T> {
    if (this.running < this.maxRunning) this.running++
    else await this.wait(waiter)
    try {
      return await work()
    } finally {
      // Passes the slot directly to the next waiter, so that a new request cannot overtake it.
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

  private next(): Waiting | undefined {
    const other = this.nextLane === 'known' ? 'others' : 'known'
    const lane = this.lanes[this.nextLane].size > 0 ? this.nextLane : other
    this.nextLane = lane === 'known' ? 'others' : 'known'
    return takeFirst(this.lanes[lane])
  }
}

const crowded = () => unavailable('Too many sign-ups and logins are in progress. Try again in a moment.')

function dropLast(lane: Lane): void {
  let largest: Waiting[] = []
  for (const turns of lane.values()) if (turns.length >= largest.length) largest = turns
  const turn = largest.at(-1)
  if (turn && remove(lane, turn)) turn.refuse()
}

function remove(lane: Lane, turn: Waiting): boolean {
  const turns = lane.get(turn.group)
  const at = turns?.indexOf(turn) ?? -1
  if (!turns || at < 0) return false
  turns.splice(at, 1)
  if (turns.length === 0) lane.delete(turn.group)
  return true
}
