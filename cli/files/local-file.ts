/** Writes local files atomically, and opens pipes and devices. */
import {
  chmodSync,
  constants,
  createWriteStream,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { Socket } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { onShutdown } from '../core/shutdown.ts'

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/**
 * Matches the paths of open file descriptors. These are written to directly, because replacing the path would
 * not change the open file.
 */
const descriptor = /^\/dev\/(fd\/\d+|std(in|out|err))$|^\/proc\/[^/]+\/fd\/\d+$/

interface LocalTarget {
  path: string
  /** `stream` means a device or an open file descriptor. */
  kind: 'file' | 'pipe' | 'stream'
}

/** Resolves symbolic links to their final target, even if the target does not exist. */
export function resolveTarget(path: string): LocalTarget {
  let target = resolve(path)
  // Linux also follows at most 40 links.
  for (let links = 0; links < 40 && !descriptor.test(target); links++) {
    if (!lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink()) break
    target = resolve(dirname(target), readlinkSync(target))
  }
  if (descriptor.test(target)) return { path, kind: 'stream' }
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats === undefined || stats.isFile() || stats.isDirectory()) return { path: target, kind: 'file' }
  return { path: target, kind: stats.isFIFO() ? 'pipe' : 'stream' }
}

/**
 * Opens a named pipe once it has a reader. Unlike `createWriteStream`, does not block a thread while waiting,
 * so Node can still exit.
 */
export async function openPipeForWriting(path: string): Promise<Writable> {
  for (;;) {
    try {
      const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
      return new Socket({ fd, readable: false, writable: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error
      await sleep(100)
    }
  }
}

/** Opens a named pipe without blocking a thread while the pipe has no writer. */
export function openPipeForReading(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}

/** A temporary file that only its owner can read. `commit` moves it to the target path. */
export class NewFile {
  private readonly target: string
  private readonly temporary: string
  private readonly release: () => void

  constructor(target: string) {
    this.target = target
    // The name is unpredictable, and `wx` never writes to an existing file or link.
    this.temporary = join(dirname(target), `.sandlot-${crypto.randomUUID()}.part`)
    this.release = onShutdown(async () => this.discard())
  }

  /** Opens the temporary file for writing. Discards the data from any earlier attempt. */
  open(): Writable {
    rmSync(this.temporary, { force: true })
    // Synchronous, because a file created after a failed transfer would block the next attempt.
    return createWriteStream(this.temporary, { fd: openSync(this.temporary, 'wx', 0o600) })
  }

  commit(mode = 0o666 & ~process.umask()): void {
    chmodSync(this.temporary, mode)
    renameSync(this.temporary, this.target)
    this.release()
  }

  discard(): void {
    rmSync(this.temporary, { force: true })
    this.release()
  }
}
