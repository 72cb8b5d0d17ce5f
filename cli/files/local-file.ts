/** Writes a file of this machine: a regular file whole or not at all, and into a pipe or a device. */
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  createWriteStream,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { beforeLeaving } from '../core/leaving.ts'

/** As many links in a row as Linux follows. */
const maxLinks = 40

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** A file that a shell has opened: renaming another one over its path would not reach it. */
const descriptor = /^\/dev\/(fd\/\d+|std(in|out|err))$|^\/proc\/[^/]+\/fd\/\d+$/

/**
 * Follows symbolic links, also to a file that does not exist yet.
 * @returns `isStream` for a target that is written into: a pipe, a device, an open file
 */
export function resolveTarget(path: string): { path: string; isStream: boolean } {
  let target = resolve(path)
  for (let links = 0; links < maxLinks && !descriptor.test(target); links++) {
    if (!lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink()) break
    target = resolve(dirname(target), readlinkSync(target))
  }
  const stats = statSync(path, { throwIfNoEntry: false })
  const isStream = descriptor.test(target) || (stats !== undefined && !stats.isFile() && !stats.isDirectory())
  return { path: isStream ? path : target, isStream }
}

/** A file that replaces another one when it is complete. Until then, other users cannot read it. */
export class NewFile {
  private readonly target: string
  private readonly temporary: string
  private readonly release: () => void

  constructor(target: string) {
    this.target = target
    // Other users cannot guess the name, and an existing file or link is never written to.
    this.temporary = `${target}.${randomUUID()}.part`
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
