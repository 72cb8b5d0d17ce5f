/** Detects when the parent process exits. Written in plain JavaScript, so that it runs on Node 20. */
import { isAlive } from '../shared/platform/process-stat.mjs'

/**
 * PID of the parent, read as early as possible. If the parent exits before this read, its exit goes
 * unnoticed.
 */
const parent = process.ppid

/**
 * Calls `gone` once when the parent or the process whose PID is in SANDLOT_WATCH_PARENT exits, even after
 * `kill -9`. Does nothing in a process started by hand, which may outlive its shell.
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
