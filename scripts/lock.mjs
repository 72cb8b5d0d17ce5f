/**
 * File locks that become free when the holder exits. Node has no flock.
 * The file contains the holder's PID and start time. Once that process has exited, another can take the lock.
 * Plain JavaScript for Node 20.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive, readStat } from '../shared/platform/process-stat.mjs'

/**
 * Acquires a lock, unless a live process holds it.
 * @param {string} path the lock file in an existing folder
 * @param {number} [pid] PID of the future holder, by default this process
 * @returns {{release: () => void, holder?: undefined} | {holder: number, release?: undefined}}
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
 * Returns the PID of the live process that holds the lock, or undefined.
 * @param {string} path
 * @returns {number | undefined}
 */
export function lockHolder(path) {
  const found = read(path)
  return found === undefined ? undefined : alive(found)
}

/**
 * Removes a dead holder's lock file, but never its successor's.
 * A second lock covers both the check and the removal.
 */
function removeStale(path, expected, pid) {
  const holderName = expected.trim().replaceAll(/\W+/g, '-').slice(0, 60)
  const removal = takeLock(`${path}.after-${holderName}`, pid)
  if (removal.release === undefined) {
    // Waits 1 ms, because the holder of the second lock needs only two system calls.
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

/** Creates a hard link atomically. Returns false if the target exists. */
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

/**
 * Returns a process's start time in clock ticks since boot. PID and start time together identify a process.
 */
function startTime(pid) {
  const stat = readStat(pid)
  if (stat) return stat[0] === 'Z' ? undefined : stat[19]
  return process.platform !== 'linux' && isAlive(pid) ? 'alive' : undefined
}
