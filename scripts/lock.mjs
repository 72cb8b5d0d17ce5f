/**
 * A lock that ends with its process: a file that names its holder. Node has no flock, so a holder counts as alive while
 * a process with its pid and start time exists, and the file of a dead one is taken over. Plain JavaScript for Node 20.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive, readStat } from '../shared/platform/process-stat.mjs'

/**
 * Takes the lock, or returns its holder.
 * @param {string} path in a folder that exists
 * @param {number} [pid] of the process that holds it; this one by default
 * @returns {{release: () => void, holder?: undefined} | {holder: number, release?: undefined}}
 *   `holder` is the pid of the live process that holds it
 */
export function takeLock(path, pid = process.pid) {
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, `${pid} ${startTime(pid)}\n`, { mode: 0o600 })
  try {
    for (;;) {
      if (link(temporary, path)) return { release: () => release(path, pid) }
      const found = read(path)
      if (found === undefined) continue
      const holder = alive(found)
      if (holder !== undefined) return { holder }
      removeStale(path, found, pid)
    }
  } finally {
    rmSync(temporary, { force: true })
  }
}

/**
 * Returns the pid of the live process that holds the lock, if any.
 * @param {string} path
 * @returns {number | undefined}
 */
export function lockHolder(path) {
  const found = read(path)
  return found === undefined ? undefined : alive(found)
}

/**
 * Removes the file of a dead holder, but never that of the next one. A second lock, named after the dead holder,
 * protects the check and the removal, and no process can replace the file while it exists.
 */
function removeStale(path, expected, pid) {
  const holderName = expected.trim().replaceAll(/\W+/g, '-').slice(0, 60)
  const removal = takeLock(`${path}.after-${holderName}`, pid)
  if (removal.release === undefined) {
    // The other process needs only two system calls.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    return
  }
  try {
    if (read(path) === expected) rmSync(path, { force: true })
  } finally {
    removal.release()
  }
}

function release(path, pid) {
  if (lockHolder(path) === pid) rmSync(path, { force: true })
}

/** link(2) is atomic and never replaces a file. */
function link(from, to) {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function alive(text) {
  const [pid, started] = text.trim().split(' ')
  return startTime(Number(pid)) === started ? Number(pid) : undefined
}

/** Clock ticks from boot to the start of the process. With the pid, they identify it. */
function startTime(pid) {
  const stat = readStat(pid)
  if (stat) return stat[0] === 'Z' ? undefined : stat[19]
  return process.platform !== 'linux' && isAlive(pid) ? 'alive' : undefined
}
