/**
 * File locks that are released when their holder exits. A lock file contains the holder's PID and start time,
 * because Node does not provide flock. Written in plain JavaScript, so that it runs on Node 20.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive, readStat } from '../shared/platform/process-stat.mjs'

/**
 * Acquires a lock, unless a live process holds it.
 * @param {string} path
 * @param {number} [pid] the process that will hold the lock
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
 * Returns the PID of the live process that holds the lock.
 * @param {string} path
 * @returns {number | undefined}
 */
export function lockHolder(path) {
  const found = read(path)
  return found === undefined ? undefined : alive(found)
}

/**
 * Removes the lock file of a dead holder. A second lock covers both the comparison with `expected` and the
 * removal, so that a new holder's lock file is never removed.
 */
function removeStale(path, expected, pid) {
  const holderName = expected.trim().replaceAll(/\W+/g, '-').slice(0, 60)
  const removal = takeLock(`${path}.after-${holderName}`, pid)
  if (removal.release === undefined) {
    // Waits 1 ms, which is enough for the two system calls of the second lock's holder.
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

/** Creates a hard link. Returns false if `to` already exists. */
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

/** Returns a process's start time in clock ticks since boot. With the PID, it identifies the process. */
function startTime(pid) {
  const stat = readStat(pid)
  if (stat) return stat[0] === 'Z' ? undefined : stat[19]
  return process.platform !== 'linux' && isAlive(pid) ? 'alive' : undefined
}
