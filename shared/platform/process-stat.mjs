/**
 * Reads Linux process information. This file is plain JavaScript, because the installer must run on older
 * Node versions.
 */
import { readFileSync } from 'node:fs'

/**
 * Reports whether a process exists.
 * @param {number} pid
 */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The process belongs to another user.
    return error.code === 'EPERM'
  }
}

/**
 * Reads /proc/PID/stat (see proc(5)).
 * @param {number} pid
 * @returns {string[] | undefined} the fields starting at field 3, so the state is at index 0; undefined if
 *   the process does not exist or the system is not Linux
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
