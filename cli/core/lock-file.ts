/** Node has no flock, so the lock is a file. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'

const pauseMs = 10
/** Clients hold a lock only briefly, so the owner of an older lock must have crashed. */
const staleMs = 5_000

/** Blocks the thread until the lock is free. @throws the file system's error */
export function lockFile(file: string): Disposable {
  const lock = `${file}.lock`
  const own = `${lock}.${crypto.randomUUID()}`
  writeFileSync(own, own, { mode: 0o600 })
  try {
    while (!link(own, lock)) {
      if (ageOf(lock) > staleMs) removeStale(lock, `${own}.stale`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
      // The lock is a hard link and shares the mtime, which must be the time of locking.
      utimesSync(own, new Date(), new Date())
    }
  } finally {
    rmSync(own, { force: true })
  }
  return {
    [Symbol.dispose]() {
      // Another process may have replaced this lock as stale.
      if (read(lock) === own) rmSync(lock, { force: true })
    },
  }
}

/** Returns false if the target exists. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** If another process has acquired the lock in the meantime, restores that process's lock. */
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
