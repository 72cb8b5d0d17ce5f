/**
 * Polls for the parent's exit, because a parent killed by `kill -9` cannot stop this process. Plain
 * JavaScript for Node 20.
 */
import { isAlive } from '../shared/platform/process-stat.mjs'

/** Read as early as possible, because a parent that exits before this line goes unnoticed. */
const parent = process.ppid

/**
 * Calls `gone` once when the parent or the process in SANDLOT_WATCH_PARENT exits.
 * Does nothing in a process started by hand, which may outlive its shell.
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
