/** Process information of Linux. Plain JavaScript, because the installer runs on older versions of Node. */
import { readFileSync } from 'node:fs'

/** @param {number} pid */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The process belongs to another user.
    return error.code === 'EPERM'
  }
}

/**
 * @param {number} pid
 * @returns {string[] | undefined} the fields of proc(5)'s stat from field 3, the state, which is `[0]`; undefined if
 *   the
 *   process does not exist, and on other systems
 */
export function readStat(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Field 2, the name, may contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
