/**
 * Detects the end of the parent process, even by `kill -9`, after which neither npm nor a script can end this process.
 * Plain JavaScript for Node 20.
 */
import { isAlive } from '../shared/platform/process-stat.mjs'

/** Read as early as possible, because an earlier death of the parent is not detected. */
const parent = process.ppid

/**
 * Calls `gone` once, when the parent process or the process in SANDLOT_WATCH_PARENT exits. Does nothing unless npm
 * started this process or that variable is set, because a process started by hand may outlive its shell.
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
