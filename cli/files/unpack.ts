/**
 * Unpacks an untrusted archive into a local folder, and never writes outside that folder. Names are latin1
 * strings, with one character per byte.
 */
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  fchmodSync,
  futimesSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { posix } from 'node:path'
import { extract, type Header } from 'tar-stream'
import type { Skipped } from './skipped.ts'

/** Maximum length of a path in bytes, as on Linux. */
const maxPathBytes = 4096
/** Error codes that stop the unpacking, because every later file would also fail. */
const fatalCodes = ['ENOSPC', 'EDQUOT']

export interface UnpackOptions {
  /** Whether to set the mode of the target folder itself. */
  setsRoot: boolean
  skipped: Skipped
}

/** Unpacks the archive passed to `write`. @param folder an existing path without symbolic links */
export function unpackInto(folder: string, options: UnpackOptions) {
  // tar-stream does not decompress, so an archive cannot grow.
  const archive = extract({ filenameEncoding: 'latin1' } as Parameters<typeof extract>[0])
  const target = new Target(Buffer.from(folder).toString('latin1'), options)
  const done = unpackEntries()
  // Prevents an unhandled rejection if unpacking fails before anything awaits it.
  done.catch(() => {})
  return {
    /** Unpacks part of the archive. Resolves when ready for more bytes. @throws if the archive is invalid */
    async write(bytes: Buffer): Promise<void> {
      if (!archive.write(bytes))
        await Promise.race([once(archive as unknown as NodeJS.EventEmitter, 'drain'), done])
    },
    /** Waits until all entries are unpacked. @throws if the archive is invalid or truncated */
    async end(): Promise<void> {
      archive.end(undefined)
      await done
    },
    abort(): void {
      archive.destroy()
      target.removeTemporary()
    },
  }

  async function unpackEntries() {
    for await (const entry of archive) {
      const { header } = entry
      try {
        const { path, link } = namesOf(header)
        if (header.type === 'file') await target.writeFile(path, header, entry as AsyncIterable<Buffer>)
        else target.makeEntry(path, link, header)
      } catch (error) {
        if (archive.destroying || fatalCodes.includes((error as NodeJS.ErrnoException).code ?? ''))
          throw error
        options.skipped.addError(textOf(header.name), error)
      }
      entry.resume()
    }
    target.finish()
  }
}

/** Returns an entry's path and link target. Names in pax headers are UTF-8, unlike names in other headers. */
function namesOf({ name, linkname, pax }: Header): { path: string[]; link: string } {
  const { path, linkpath } = (pax ?? {}) as Record<string, string | undefined>
  if ([path, linkpath].some((each) => each?.includes('\ufffd')))
    throw new Error('its name is not valid UTF-8')
  const bytesOf = (text: string) => Buffer.from(text).toString('latin1')
  const whole = path === undefined ? name : bytesOf(path)
  return { path: partsOf(whole), link: linkpath === undefined ? (linkname ?? '') : bytesOf(linkpath) }
}

/** Returns the segments of a path. Treats an absolute name as relative to the target folder. */
function partsOf(name: string): string[] {
  if (name.length > maxPathBytes) throw new Error(`its name is ${name.length} bytes long`)
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw new Error('its name contains ..')
  return parts
}

const textOf = (latin1: string): string => Buffer.from(latin1.slice(0, 1000), 'latin1').toString()
const bytesOf = (path: string): Buffer => Buffer.from(path, 'latin1')

type FolderFacts = Pick<Header, 'mode' | 'mtime'>

interface OpenFolder {
  name: string
  /**
   * Mode and modification time. They are set after the folder's entries are unpacked, because unpacking
   * requires write permission and changes the modification time.
   */
  facts?: FolderFacts
}

class Target {
  private readonly root: string
  private readonly options: UnpackOptions
  private rootFacts: FolderFacts | undefined
  /** Folders that contain the current entry, outermost first. */
  private readonly open: OpenFolder[] = []
  private temporary: string | undefined

  constructor(root: string, options: UnpackOptions) {
    this.root = root
    this.options = options
  }

  makeEntry(path: string[], link: string, { type, mode, mtime }: Header): void {
    if (type === 'directory') this.makeFolder(path, { mode, mtime })
    else if (type === 'symlink') this.makeLink(path, link, mtime)
    else if (type === 'link') this.makeHardLink(path, partsOf(link))
    else throw new Error(type === 'fifo' ? 'is a pipe' : 'is not a file, a folder or a link')
  }

  async writeFile(path: string[], { mode, mtime }: Header, content: AsyncIterable<Buffer>): Promise<void> {
    const file = openSync(this.prepare(path), 'wx', 0o600)
    try {
      for await (const chunk of content)
        for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at)
      futimesSync(file, mtime, mtime)
      // Clears setuid and setgid, so that a program from a sandbox never runs with its owner's privileges.
      fchmodSync(file, mode & 0o777)
      this.commit(path)
    } finally {
      closeSync(file)
      this.removeTemporary()
    }
  }

  finish(): void {
    this.leaveFolders(0)
    if (this.rootFacts) this.setFacts([], this.rootFacts)
  }

  removeTemporary(): void {
    if (this.temporary !== undefined) rmSync(bytesOf(this.temporary), { force: true })
    this.temporary = undefined
  }

  private makeFolder(path: string[], facts: FolderFacts): void {
    if (path.length > 0) {
      this.enter(path.slice(0, -1), { mode: undefined })
      this.enter(path, { mode: 0o700 })
      this.open.at(-1)!.facts = facts
    } else if (this.options.setsRoot) this.rootFacts = facts
    else return
    // Writable until all entries are unpacked.
    chmodSync(this.pathOf(path), (facts.mode & 0o777) | 0o700)
  }

  private makeLink(path: string[], target: string, mtime: Date): void {
    if (!staysInside(path.join('/'), target))
      throw new Error(`a link to ${textOf(target)} points outside the folder`)
    this.place(path, (temporary) => {
      symlinkSync(bytesOf(target), temporary)
      lutimesSync(temporary, mtime, mtime)
    })
  }

  private makeHardLink(path: string[], target: string[]): void {
    this.enter(target.slice(0, -1))
    const existing = this.pathOf(target)
    if (!statsOf(existing)?.isFile())
      throw new Error('is a hard link whose target is not a file in the folder')
    this.place(path, (temporary) => linkSync(existing, temporary))
  }

  private place(path: string[], make: (temporary: Buffer) => void): void {
    const temporary = this.prepare(path)
    try {
      make(temporary)
      this.commit(path)
    } finally {
      this.removeTemporary()
    }
  }

  private prepare(path: string[]): Buffer {
    if (path.length === 0) throw new Error('has the name of the folder itself but is not a folder')
    const folder = path.slice(0, -1)
    this.enter(folder, { mode: undefined })
    this.temporary = [this.root, ...folder, `.sandlot-${crypto.randomUUID()}.part`].join('/')
    return bytesOf(this.temporary)
  }

  private commit(path: string[]): void {
    const final = this.pathOf(path)
    const stats = statsOf(final)
    if (stats && !stats.isFile() && !stats.isSymbolicLink())
      throw new Error('the existing entry is not a file and is not replaced')
    renameSync(bytesOf(this.temporary!), final)
  }

  /**
   * Leaves the open folders that do not contain the path, then enters the remaining folders of the path.
   * Never follows a link. Creates missing folders only if `missing` is set.
   */
  private enter(path: string[], missing?: { mode: number | undefined }): void {
    let depth = 0
    while (depth < path.length && this.open[depth]?.name === path[depth]) depth++
    this.leaveFolders(depth)
    for (const name of path.slice(depth)) {
      const folder = this.pathOf([...this.open.map((each) => each.name), name])
      const stats = statsOf(folder)
      if (stats === undefined && missing) mkdirSync(folder, missing.mode)
      else if (!stats?.isDirectory()) throw new Error(`${textOf(name)} is not a folder here`)
      this.open.push({ name })
    }
  }

  private leaveFolders(depth: number): void {
    for (; this.open.length > depth; this.open.pop()) {
      const { facts } = this.open.at(-1)!
      const path = this.open.map(({ name }) => name)
      if (facts) this.setFacts(path, facts)
    }
  }

  private setFacts(path: string[], { mode, mtime }: FolderFacts): void {
    try {
      utimesSync(this.pathOf(path), mtime, mtime)
      chmodSync(this.pathOf(path), mode & 0o777)
    } catch (error) {
      this.options.skipped.addError(textOf(path.join('/')) || '.', error)
    }
  }

  private pathOf = (path: string[]): Buffer => bytesOf([this.root, ...path].join('/'))
}

const statsOf = (path: Buffer): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

/**
 * Returns whether a symbolic link's target is inside the unpacked folder. Allows `..` only at the start of
 * the target, because `..` after the name of another link could lead out of the folder.
 */
function staysInside(path: string, target: string): boolean {
  const climb = /^(?:\.{1,2}(?:\/+|$))*/.exec(target)![0]
  const reached = posix.join(posix.dirname(path), climb)
  return ![reached, target.slice(climb.length)].some(leadsOut)
}

const leadsOut = (path: string): boolean => posix.isAbsolute(path) || path.split('/').includes('..')
