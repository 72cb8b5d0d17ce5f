/** Locks a file by creating another file next to it, because Node does not provide flock. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'

const pauseMs = 10
/** A lock older than this is stale: clients hold locks only briefly, so its owner must have crashed. */
const staleMs = 5_000

/** Locks a file, blocking the thread until the lock is free. @throws the file system's error */
export function lockFile(file: string): Disposable {
  const lock = `${file}.lock`
  const own = `${lock}.${crypto.randomUUID()}`
  writeFileSync(own, own, { mode: 0o600 })
  try {
    while (!link(own, lock)) {
      if (ageOf(lock) > staleMs) removeStale(lock, `${own}.stale`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
      // The lock is a hard link to this file and shares its mtime, which must be the time of locking.
      utimesSync(own, new Date(), new Date())
    }
  } finally {
    rmSync(own, { force: true })
  }
  return {
    [Symbol.dispose]() {
      // Another process may have considered this lock stale and replaced it.
      if (read(lock) === own) rmSync(lock, { force: true })
    },
  }
}

/** Creates a hard link. Returns false if `to` already exists. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Removes a stale lock, but restores it if another process has just acquired it. */
function removeStale(lock: string, aside: string): void {
  try {
    renameSync(lock, aside)
  } catch {
    return
  }
  if (ageOf(aside) <= staleMs) link(aside, lock)
  rmSync(aside, { force: true })
}

const ageOf = (path: string): number => {
  const { mtimeMs = Date.now() } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return Date.now() - mtimeMs
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
