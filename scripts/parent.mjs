/**
 * Notices that the process that started this one is gone, even after `kill -9`: then npm, or the script
 * before, is not there to end us. Plain JavaScript for Node 20.
 */
import { isThere } from '../shared/platform/process-stat.mjs'

/** Read as early as possible: a parent that dies before goes unnoticed. */
const parent = process.ppid

/**
 * Calls back once when the parent is gone, or the process whose pid SANDLOT_WATCH_PARENT names. Watches
 * only under npm or with that pid: whoever starts a process by hand may well leave it running.
 * @param {() => void} gone
 */
export function watchParent(gone) {
  const named = Number(process.env.SANDLOT_WATCH_PARENT)
  if (process.env.npm_lifecycle_event === undefined && !named) return
  const timer = setInterval(() => {
    if (process.ppid === parent && (!named || isThere(named))) return
    clearInterval(timer)
    gone()
  }, 300)
  timer.unref()
}
