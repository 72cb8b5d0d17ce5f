import { readStat } from '../../shared/platform/process-stat.mjs'

export function median(figures: number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Returns the CPU time of `work` in milliseconds, which does not depend on other processes. */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Returns a process's CPU time in ticks of 10 ms. */
export function processorTicks({ pid }: { pid: number }): number {
  const [, , , , , , , , , , , user, system] = readStat(pid)!
  return Number(user) + Number(system)
}
