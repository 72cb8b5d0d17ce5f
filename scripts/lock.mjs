/**
 * A lock that ends with its process: a file that names its holder. Node has no flock, so a
 * holder counts as alive while a process of its pid and start time exists; what a killed one
 * left behind is taken over. Plain JavaScript for Node 20, like all that runs before an install.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isThere, readStat } from '../shared/platform/process-stat.mjs'

/**
 * Takes the lock, or tells who has it.
 * @param {string} path in a folder that exists
 * @param {number} [pid] of the process that shall hold it, this one unless told
 * @returns {{release: () => void, holder?: undefined} | {holder: number, release?: undefined}}
 *   `holder` is the pid of the living process that has it
 */
export function takeLock(path, pid = process.pid) {
  const own = `${path}.${process.pid}`
  writeFileSync(own, `${pid} ${startTime(pid)}\n`, { mode: 0o600 })
  try {
    for (;;) {
      if (link(own, path)) return { release: () => release(path, pid) }
      const found = read(path)
      if (found === undefined) continue
      const holder = alive(found)
      if (holder !== undefined) return { holder }
      takeAway(path, found, pid)
    }
  } finally {
    rmSync(own, { force: true })
  }
}

/**
 * The pid of the living process that holds the lock, if any.
 * @param {string} path
 * @returns {number | undefined}
 */
export function lockHolder(path) {
  const found = read(path)
  return found === undefined ? undefined : alive(found)
}

/**
 * Removes a dead holder's file, and never that of the next one. Only who holds a lock of its own on the dead holder's
 * words may do so, and nobody can put another file in its place while it is there.
 */
function takeAway(path, expected, pid) {
  const words = expected.trim().replaceAll(/\W+/g, '-').slice(0, 60)
  const turn = takeLock(`${path}.after-${words}`, pid)
  if (turn.release === undefined) {
    // Its holder needs two calls of the system.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    return
  }
  try {
    if (read(path) === expected) rmSync(path, { force: true })
  } finally {
    turn.release()
  }
}

function release(path, pid) {
  if (lockHolder(path) === pid) rmSync(path, { force: true })
}

/** A hard link appears whole or not at all, and never over another file. */
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

/** Ticks between the machine's start and the process's: with the pid it names one process. */
function startTime(pid) {
  const stat = readStat(pid)
  if (stat) return stat[0] === 'Z' ? undefined : stat[19]
  return process.platform !== 'linux' && isThere(pid) ? 'alive' : undefined
}
