/**
 * Reads the state of processes. Written in plain JavaScript, because the installer must run on older versions
 * of Node.
 */
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
 * Returns the fields of /proc/PID/stat from field 3, the state. Returns undefined if the process does not exist
 * or the system is not Linux.
 * @param {number} pid
 * @returns {string[] | undefined}
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
