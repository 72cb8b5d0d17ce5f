/**
 * File locks that become free when the holder exits, because Node has no flock. A lock file contains the PID and the
 * start time of its holder. Written in plain JavaScript, so that it runs on Node 20.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive, readStat } from '../shared/platform/process-stat.mjs'

/**
 * Acquires a lock, unless a live process holds it.
 * @param {string} path
 * @param {number} [pid] the holder
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

/** Removes a dead holder's lock file, but never its successor's: a second lock covers the check and the removal. */
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

/** Returns false if the target already exists. */
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

/** In clock ticks since boot. PID and start time together identify a process. */
function startTime(pid) {
  const stat = readStat(pid)
  if (stat) return stat[0] === 'Z' ? undefined : stat[19]
  return process.platform !== 'linux' && isAlive(pid) ? 'alive' : undefined
}
