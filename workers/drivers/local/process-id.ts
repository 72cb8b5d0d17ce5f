/** Identifies a process by pid, start time and boot, because pids are used again. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface ProcessId {
  pid: number
  /** Its start time, in a unit of the system: the same for the same process. */
  started: string
}

/** The process that has this pid now; undefined when there is none, or a zombie. */
export function identify(pid: number): ProcessId | undefined {
  if (process.platform !== 'linux') return identifyByPs(pid)
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // Field 2, the name, may hold spaces and parentheses. Field 3 follows the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined
  return { pid, started: `${fields[19]}@${bootId()}` }
}

export const isAlive = (id: ProcessId): boolean => identify(id.pid)?.started === id.started

/** Kills the process; does nothing when it has ended, even if its pid is another's now. */
export function kill(id: ProcessId): void {
  if (!isAlive(id)) return
  killPid(id.pid)
}

/** @param pid negative for a process group */
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

function identifyByPs(pid: number): ProcessId | undefined {
  const { stdout } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' })
  const line = stdout?.trim()
  if (!line || line.startsWith('Z')) return undefined
  return { pid, started: line.slice(line.indexOf(' ')).trim() }
}
