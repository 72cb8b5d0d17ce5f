/**
 * Detects that the parent process has exited. A parent that was killed by `kill -9` cannot stop this process, so this
 * process polls to find out. Plain JavaScript for Node 20.
 */
import { isAlive } from '../shared/platform/process-stat.mjs'

/** PID of the parent, read as early as possible. If the parent exits before this line runs, the exit goes unnoticed. */
const parent = process.ppid

/**
 * Calls `gone` once when the parent process, or the process whose PID is in SANDLOT_WATCH_PARENT, exits. Does nothing
 * if the variable is unset and npm did not start this process, because a process started by hand is allowed to outlive
 * its shell.
 * @param {() => void} gone
 */
export function watchParent(gone) {
  const named = Number(process.env.SANDLOT_WATCH_PARENT)
  if (process.env.npm_lifecycle_event === undefined && !named) return
  const timer = setInterval(() => {
    if (process.ppid === parent && (!named || isAlive(named))) return
    clearInterval(timer)
    gone()
  }, 300)
  timer.unref()
}
