/** One process at a time: a file beside the one that is locked. Node has no flock. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'

const pauseMs = 10
/** A client has the lock for some milliseconds, so one that is older was left behind. */
const staleMs = 5_000

/** Waits until nobody else has it. @throws whatever the file system says, where no file can be made */
export function lockFile(file: string): Disposable {
  const lock = `${file}.lock`
  const own = `${lock}.${crypto.randomUUID()}`
  writeFileSync(own, own, { mode: 0o600 })
  try {
    while (!link(own, lock)) {
      if (ageOf(lock) > staleMs) takeAway(lock, `${own}.stale`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
      // Its age counts from when it is taken.
      utimesSync(own, new Date(), new Date())
    }
  } finally {
    rmSync(own, { force: true })
  }
  return {
    [Symbol.dispose]() {
      // One that was taken away from us is somebody else's now.
      if (read(lock) === own) rmSync(lock, { force: true })
    },
  }
}

/** A hard link appears whole or not at all, and never over another file. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Removes what is stale, and puts back what somebody else has put there meanwhile. */
function takeAway(lock: string, aside: string): void {
  try {
    renameSync(lock, aside)
  } catch {
    return
  }
  if (ageOf(aside) <= staleMs) link(aside, lock)
  rmSync(aside, { force: true })
}

/** In milliseconds; 0 when it is gone. */
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
