/**
 * Detects event-loop stalls. After a stall, a late response does not mean that the peer is dead, and peers
 * may consider this process lost.
 */
import { setImmediate } from 'node:timers/promises'

const tickMs = 250
/** Minimum duration of a recorded stall. Shorter stalls are common and cannot exceed a timeout. */
const minMs = 1_000
/** Time after a stall during which received data may still be unread. */
const readMs = 3_000
const rememberMs = 60_000

let tickedAt = performance.now()
let stalls: { endedAt: number; ms: number }[] = []
setInterval(tick, tickMs).unref()

function tick(): void {
  const now = performance.now()
  const ms = now - tickedAt
  tickedAt = now
  if (ms < minMs) return
  stalls = [...stalls.filter(({ endedAt }) => now - endedAt < rememberMs), { endedAt: now, ms }]
}

/**
 * Returns whether the event loop stalled for at least `ms` milliseconds after a given time.
 * @param since a value of performance.now() from the last minute; older stalls are forgotten
 */
export function wasStalled(since: number, ms: number = minMs): boolean {
  tick()
  return stalls.some((stall) => stall.endedAt > since && stall.ms >= ms)
}

/**
 * Number of event-loop iterations that Node needs to read a chunk and the end of its stream, and to call the
 * handlers.
 */
const iterations = 3

/** Waits until this process has read all data and stream ends that its connections have already received. */
export async function readPendingInput(): Promise<void> {
  for (let count = 0; count < iterations; count++) await setImmediate()
}

/**
 * Calls `act` after `ms` milliseconds, unless the returned function is called first. After an event-loop
 * stall, `act` is postponed so that data that has already arrived can be read first.
 */
export function whenSilentFor(ms: number, act: () => void): () => void {
  const fire = () => {
    if (wasStalled(performance.now() - readMs)) timer = setTimeout(fire, readMs)
    else act()
  }
  let timer = setTimeout(fire, ms)
  return () => clearTimeout(timer)
}
