import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Process } from './process.ts'

export const memoryOf = ({ pid }: Process): number => {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kilobytes) * 1024
}

/** @returns the peak memory of each process during `work`, in bytes */
export async function peakMemory(
  processes: readonly Process[],
  work: () => Promise<unknown>,
): Promise<number[]> {
  const most = processes.map(memoryOf)
  const timer = setInterval(() => {
    for (const [index, process] of processes.entries())
      most[index] = Math.max(most[index]!, memoryOf(process))
  }, 20)
  try {
    await work()
    return most
  } finally {
    clearInterval(timer)
  }
}

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

/**
 * Returns this process's memory after garbage collection, in bytes. V8 frees array buffers in another thread, so the
 * first collection still counts them, and the second waits for that thread.
 */
export function memoryKept(): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
