import { readStat } from '../../shared/platform/process-stat.mjs'

export function median(figures: number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** @returns milliseconds of the processor's time: what others do on this machine does not count */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** @returns what a process has taken of processors so far, in ticks of 10 ms: what else runs on the machine is no part */
export function processorTicks({ pid }: { pid: number }): number {
  const [, , , , , , , , , , , user, system] = readStat(pid)!
  return Number(user) + Number(system)
}
