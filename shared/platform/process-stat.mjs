/** Process information of Linux. Plain JavaScript, because the installer runs on older versions of Node. */
import { readFileSync } from 'node:fs'

/** @param {number} pid */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // It belongs to another user.
    return error.code === 'EPERM'
  }
}

/**
 * @param {number} pid
 * @returns {string[] | undefined} the fields of proc(5)'s stat from the third on, the state: `[0]` is field 3;
 *   undefined when there is no such process, and on other systems
 */
export function readStat(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Field 2, the name, may hold spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
