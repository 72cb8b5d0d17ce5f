/**
 * Work that few may do at once, shared out fairly: those who wait take turns by where they come from, so
 * that a crowd from one place waits behind itself. What would wait too long is refused at once.
 */
import { addAbortListener } from 'node:events'
import { unavailable } from '../../shared/platform/problem.ts'
import { append, type Turns, takeFirst } from '../../shared/platform/turns.ts'

export interface Waiter {
  /** Where it comes from: a network, however many addresses that has. */
  group: string
  /** Whether it is known to be welcome: half of all turns are theirs, if they want them. */
  isKnown: boolean
  /** Its place is given up when this aborts. */
  signal?: AbortSignal
}

export interface FairQueue {
  /** @throws {Problem} `unavailable` when too many wait already */
  run<T>(waiter: Waiter, work: () => Promise<T>): Promise<T>
}

interface Turn {
  group: string
  begin(): void
  refuse(): void
}

/** One of the queue's two. */
type Lane = Turns<Turn>

/** However quick the work is: what waits holds a connection and a body. */
const mostWaiting = 50
/** How long the last in a lane may have to wait, as the last runs took. */
const mostWaitMs = 4_000
/** Of how many runs the usual time is the mean, about. */
const remembered = 8

/** @param atOnce how many may be at work */
export function makeFairQueue(atOnce: number): FairQueue {
  const lanes: { known: Lane; others: Lane } = { known: new Map(), others: new Map() }
  let running = 0
  let usualMs = 0
  let turnOf: keyof typeof lanes = 'known'

  const waiting = (lane: Lane) => [...lane.values()].reduce((sum, turns) => sum + turns.length, 0)
  /** At least one for each that can be at work: they wait no longer than one run. */
  const room = () => Math.max(atOnce, Math.min(mostWaiting, (mostWaitMs * atOnce) / Math.max(usualMs, 1)))

  function next(): Turn | undefined {
    const other = turnOf === 'known' ? 'others' : 'known'
    const lane = lanes[turnOf].size > 0 ? turnOf : other
    turnOf = lane === 'known' ? 'others' : 'known'
    return takeFirst(lanes[lane])
  }

  /** Whoever is done hands his place on, so that nobody slips in between. */
  function leave(tookMs: number) {
    usualMs += (tookMs - usualMs) / (usualMs === 0 ? 1 : remembered)
    const turn = next()
    if (turn) turn.begin()
    else running--
  }

  const line = ({ group, isKnown, signal }: Waiter) =>
    new Promise<void>((begin, reject) => {
      const lane = isKnown ? lanes.known : lanes.others
      const turn = { group, begin, refuse: () => reject(crowded()) }
      append(lane, group, turn)
      if (signal) addAbortListener(signal, () => remove(lane, turn) && turn.refuse())
      if (waiting(lane) > room()) dropLast(lane)
    })

  return {
    async run(waiter, work) {
      if (running < atOnce) running++
      else await line(waiter)
      const startedAt = performance.now()
      try {
        return await work()
      } finally {
        leave(performance.now() - startedAt)
      }
    },
  }
}

const crowded = () => unavailable('Too many sign-ups and logins are going on. Try again in a moment.')

/** The newest of the group that has most. Of equals the last one: who waits longer is not pushed out. */
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
