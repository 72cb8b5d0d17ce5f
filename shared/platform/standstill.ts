/**
 * Whether this process stood still: it was frozen, its machine was, or one piece of work held it up. What it then finds
 * late says nothing about others, and others may have taken it for lost meanwhile.
 */
import { setImmediate } from 'node:timers/promises'

const tickMs = 250
/** Milliseconds. Shorter stalls are common on a busy machine, and no timeout is that short. */
const leastMs = 1_000
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
  if (ms < leastMs) return
  stops = [...stops.filter(({ endedAt }) => now - endedAt < rememberMs), { endedAt: now, ms }]
}

/**
 * Whether the process stood still for so many milliseconds, or nearly, since then.
 * @param since of performance.now(), at most a minute ago
 */
export function stoodStill(since: number, ms: number = leastMs): boolean {
  look()
  return stops.some((stop) => stop.endedAt > since && stop.ms >= ms)
}

/** A chunk, the end after it and its consequences take one turn of the event loop each. */
const turns = 3

/** Resolves when the data that has arrived on this process's connections has been read, including their ends. */
export async function readWhatCame(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await setImmediate()
}

/**
 * Like setTimeout, for time-outs on others: what came while this process stood still has time to be read.
 * @returns what stops it
 */
export function whenSilentFor(ms: number, act: () => void): () => void {
  const fire = () => {
    if (stoodStill(performance.now() - readMs)) timer = setTimeout(fire, readMs)
    else act()
  }
  let timer = setTimeout(fire, ms)
  return () => clearTimeout(timer)
}
