/** Identifies a process by its pid, its start time and the machine's boot ID, because pids are reused. */
import { readFileSync } from 'node:fs'
import { readStat } from '../../../shared/platform/process-stat.mjs'

export interface ProcessId {
  pid: number
  started: string
}

/** Returns the identity of a process, or undefined if no process has this pid or the process is a zombie. */
export function identify(pid: number): ProcessId | undefined {
  const stat = readStat(pid)
  if (!stat || stat[0] === 'Z' || stat[0] === 'X') return undefined
  return { pid, started: `${stat[19]}@${bootId()}` }
}

export const isAlive = (id: ProcessId): boolean => identify(id.pid)?.started === id.started

/** Kills a process. Does nothing if the process has ended, even if its pid has been reused. */
export function kill(id: ProcessId): void {
  if (isAlive(id)) killPid(id.pid)
}

export function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

let boot: string | undefined
function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return boot
}
