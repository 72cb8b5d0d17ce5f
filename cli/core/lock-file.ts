/** Locks a file by a second file next to it, because Node has no flock. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'

const pauseMs = 10
/** Clients hold the lock for milliseconds; an older one was left by a crash. */
const staleMs = 5_000

/** Blocks until the lock is free. @throws if the file system refuses to create it */
export function lockFile(file: string): Disposable {
  const lock = `${file}.lock`
  const own = `${lock}.${crypto.randomUUID()}`
  writeFileSync(own, own, { mode: 0o600 })
  try {
    while (!link(own, lock)) {
      if (ageOf(lock) > staleMs) takeAway(lock, `${own}.stale`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
      // The age of the lock counts from its creation.
      utimesSync(own, new Date(), new Date())
    }
  } finally {
    rmSync(own, { force: true })
  }
  return {
    [Symbol.dispose]() {
      // Another process may have taken a stale lock over.
      if (read(lock) === own) rmSync(lock, { force: true })
    },
  }
}

/** A hard link is created atomically and never replaces a file. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Removes a stale lock, and restores a new one that was renamed by accident. */
function takeAway(lock: string, aside: string): void {
  try {
    renameSync(lock, aside)
  } catch {
    return
  }
  if (ageOf(aside) <= staleMs) link(aside, lock)
  rmSync(aside, { force: true })
}

/** In milliseconds; 0 if it does not exist. */
const ageOf = (path: string): number => {
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  return made === undefined ? 0 : Date.now() - made
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
