/**
 * Kills the process after an event-loop stall, so that its supervisor restarts it. The monitoring thread uses
 * 18 MB of memory, and starting it takes 25 ms of CPU time.
 */
import { Worker } from 'node:worker_threads'
import type { Logger } from './log.ts'

const tickMs = 1_000

/** @param seconds length of a stall after which the process is killed; 0 disables the check */
export function exitWhenStalled(seconds: number, log: Logger): void {
  if (seconds === 0) return
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  setInterval(() => Atomics.add(beats, 0, 1), tickMs).unref()
  const watcher = new Worker(new URL('./stall-watcher.mjs', import.meta.url), {
    name: 'stall-watcher',
    workerData: { beats, tickMs, maxTicks: Math.ceil((seconds * 1000) / tickMs) },
    execArgv: [],
    // By default, the thread would reserve as much memory as the whole process may use.
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  })
  watcher.on('error', (err) => log.error({ err }, 'the event-loop monitor has failed'))
  watcher.unref()
}
