/**
 * Monitoring thread that stall.ts starts. It measures time by its own ticks, so a suspension of the machine
 * does not count as a stall.
 */
import { write } from 'node:fs'
import { workerData } from 'node:worker_threads'

const { beats, tickMs, maxTicks } = workerData
let seen = Atomics.load(beats, 0)
let ticks = 0

const timer = setInterval(() => {
  const beat = Atomics.load(beats, 0)
  ticks = beat === seen ? ticks + 1 : 0
  seen = beat
  if (ticks < maxTicks) return
  clearInterval(timer)
  const message = `The event loop was stalled for ${(ticks * tickMs) / 1000} s. Process ${process.pid} exits.\n`
  write(2, message, end)
  // If unread output has caused the stall, this write may also block.
  setTimeout(end, 1_000)
}, tickMs)

function end() {
  process.kill(process.pid, 'SIGKILL')
}
