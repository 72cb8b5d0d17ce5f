/**
 * Notices that whoever started this process is gone, `kill -9` included: then npm, or the script
 * before, is not there to end us. Plain JavaScript for Node 20.
 */

/** As early as can be: whoever dies before this is read goes unnoticed. */
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
    if (process.ppid === parent && (!named || isAlive(named))) return
    clearInterval(timer)
    gone()
  }, 300)
  timer.unref()
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}
