/**
 * Detects that the parent process has exited. After `kill -9`, the parent can no longer stop this process, so this
 * process must notice by polling. Plain JavaScript for Node 20.
 */
import { isAlive } from '../shared/platform/process-stat.mjs'

/** PID of the parent. It is read as early as possible, because an earlier exit of the parent cannot be detected. */
const parent = process.ppid

/**
 * Calls `gone` once when the parent process, or the process whose PID is in SANDLOT_WATCH_PARENT, exits. Does nothing
 * if the variable is unset and npm did not start this process, because a process started by hand may outlive its shell.
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
