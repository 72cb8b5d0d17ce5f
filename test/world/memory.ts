/** What processes have in use, in bytes. */
import { readFileSync } from 'node:fs'
import type { Process } from './process.ts'

export const memoryOf = ({ pid }: Process): number => {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kilobytes) * 1024
}

/** Looks again and again until it is stopped. @returns the most that each of them had meanwhile */
export function watchMemory(processes: readonly Process[]): { stop(): number[] } {
  const most = processes.map(memoryOf)
  const timer = setInterval(() => {
    for (const [index, process] of processes.entries())
      most[index] = Math.max(most[index]!, memoryOf(process))
  }, 20)
  return {
    stop() {
      clearInterval(timer)
      return most
    },
  }
}
