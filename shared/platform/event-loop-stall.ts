/**
 * Detects event-loop stalls: the process or the machine was frozen, or a synchronous operation took long. After a
 * stall, a late reply does not mean that the peer is dead, and peers may consider this process lost.
 */
import { setImmediate } from 'node:timers/promises'

const tickMs = 250
/** Milliseconds. Shorter stalls are common on a busy machine, and shorter than every timeout. */
const minMs = 1_000
/** Milliseconds after a stall during which received data may still be unread. */
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
 * Whether a stall of `ms` milliseconds or more has ended since `since`.
 * @param since a time of performance.now(), within the last minute
 */
export function wasStalled(since: number, ms: number = minMs): boolean {
  tick()
  return stalls.some((stall) => stall.endedAt > since && stall.ms >= ms)
}

/** A chunk, the end of its stream and the handlers of both are processed in successive iterations. */
const iterations = 3

/** Resolves after all received data, including the ends of streams, has been read from this process's connections. */
export async function readPendingInput(): Promise<void> {
  for (let count = 0; count < iterations; count++) await setImmediate()
}

/**
 * Like setTimeout, for liveness timeouts: after a stall, received data is read first.
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
