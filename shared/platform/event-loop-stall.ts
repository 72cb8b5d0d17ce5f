/**
 * Detects event-loop stalls: the process or the machine was frozen, or one piece of work took long. After a stall, a
 * late reply does not mean that the peer is dead, and peers may consider this process lost.
 */
import { setImmediate } from 'node:timers/promises'

const tickMs = 250
/** Milliseconds. Shorter stalls are common on a busy machine, and no timeout is that short. */
const minMs = 1_000
/** Milliseconds after a stall in which data that has arrived may still be unread. */
const readMs = 3_000
const rememberMs = 60_000

let tickedAt = performance.now()
let stops: { endedAt: number; ms: number }[] = []
setInterval(look, tickMs).unref()

function look(): void {
  const now = performance.now()
  const ms = now - tickedAt
  tickedAt = now
  if (ms < minMs) return
  stops = [...stops.filter(({ endedAt }) => now - endedAt < rememberMs), { endedAt: now, ms }]
}

/**
 * Whether a stall of at least this many milliseconds ended since then.
 * @param since of performance.now(), at most a minute ago
 */
export function wasStalled(since: number, ms: number = minMs): boolean {
  look()
  return stops.some((stop) => stop.endedAt > since && stop.ms >= ms)
}

/** A chunk, the end after it and its consequences take one turn of the event loop each. */
const turns = 3

/** Resolves when the data that has arrived on this process's connections has been read, including their ends. */
export async function readPendingInput(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await setImmediate()
}

/**
 * Like setTimeout, for liveness timeouts: after a stall, data that has arrived is read first.
 * @returns a function that clears the timeout
 */
export function whenSilentFor(ms: number, act: () => void): () => void {
  const fire = () => {
    if (wasStalled(performance.now() - readMs)) timer = setTimeout(fire, readMs)
    else act()
  }
  let timer = setTimeout(fire, ms)
  return () => clearTimeout(timer)
}
