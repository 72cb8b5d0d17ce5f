/** Writes a file of this machine: a regular file whole or not at all, and into a pipe or a device. */
import { randomUUID } from 'node:crypto'
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
import { beforeLeaving } from '../core/leaving.ts'

/** As many links in a row as Linux follows. */
const maxLinks = 40

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** A file that a shell has opened: renaming another one over its path would not reach it. */
const descriptor = /^\/dev\/(fd\/\d+|std(in|out|err))$|^\/proc\/[^/]+\/fd\/\d+$/

interface LocalTarget {
  path: string
  /** `stream` for a device and for an open file or pipe of a shell. */
  kind: 'file' | 'pipe' | 'stream'
}

/** Follows symbolic links, also to a file that does not exist yet. */
export function resolveTarget(path: string): LocalTarget {
  let target = resolve(path)
  for (let links = 0; links < maxLinks && !descriptor.test(target); links++) {
    if (!lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink()) break
    target = resolve(dirname(target), readlinkSync(target))
  }
  if (descriptor.test(target)) return { path, kind: 'stream' }
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats === undefined || stats.isFile() || stats.isDirectory()) return { path: target, kind: 'file' }
  return { path: target, kind: stats.isFIFO() ? 'pipe' : 'stream' }
}

/**
 * Opens a pipe when another process reads it. `createWriteStream` would wait for that in a thread, and Node does not
 * exit while a thread waits.
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

/** As {@link openPipeForWriting}; its first byte may arrive at any time. */
export function openPipeForReading(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}

/** A file that replaces another one when it is complete. Until then, other users cannot read it. */
export class NewFile {
  private readonly target: string
  private readonly temporary: string
  private readonly release: () => void

  constructor(target: string) {
    this.target = target
    // Other users cannot guess the name, and an existing file or link is never written to.
    this.temporary = join(dirname(target), `.sandlot-${randomUUID()}.part`)
    this.release = beforeLeaving(async () => this.discard())
  }

  /** Starts the content, or starts it again. */
  open(): Writable {
    rmSync(this.temporary, { force: true })
    // Opened synchronously: a file that is created after its transfer failed would block the next attempt.
    return createWriteStream(this.temporary, { fd: openSync(this.temporary, 'wx', 0o600) })
  }

  /** @param mode by default that of any new file */
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
