/** The thread of stall.ts. It counts its own ticks, which also stop while the process or the machine is suspended. */
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
  const words = `The event loop stood still for ${(ticks * tickMs) / 1000} s: process ${process.pid} ends itself.\n`
  write(2, words, end)
  // Perhaps it stalls because its output is not read.
  setTimeout(end, 1_000)
}, tickMs)

function end() {
  process.kill(process.pid, 'SIGKILL')
}
