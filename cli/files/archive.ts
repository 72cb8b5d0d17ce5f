/** Folders of this machine, as tar. What is unpacked may come from anybody. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { create, extract, type ReadEntry, type WriteEntry } from 'tar'
import { type ArchivedLink, makeLinks } from './links.ts'

interface Packing {
  /** What all names in the archive begin with. */
  prefix: string
  /** Whether the folder itself is an entry, and not only what is in it. */
  root: boolean
  /** Gets what was left out, such as a socket, with why. */
  leftOut: string[]
}

/** @throws when a folder cannot be read */
export function pack(folder: string, { prefix, root, leftOut }: Packing): AsyncIterable<Buffer> {
  // Behind ./ no name can begin with @, which would stand for an archive to take in.
  const names = root ? ['.'] : readdirSync(folder).map((name) => `./${name}`)
  if (names.length === 0) return emptyArchive()
  const options = {
    cwd: folder,
    prefix,
    // So it does not name the users of this machine.
    portable: true,
    // A portable archive would leave out the time of a folder, which then is that of 1970.
    onWriteEntry(entry: WriteEntry) {
      entry.noMtime = false
    },
    onwarn: collectIn(leftOut),
  }
  return create(options, names)
}

async function* emptyArchive() {
  yield Buffer.alloc(1024)
}

/** Unpacks an archive below a folder, and nowhere else, whatever the archive says. */
export function unpackInto(folder: string) {
  const links: ArchivedLink[] = []
  const leftOut: string[] = []
  const unpacking = extract({
    cwd: folder,
    preserveOwner: false,
    filter(path, entry) {
      const { type, linkpath = '' } = entry as ReadEntry
      if (type !== 'SymbolicLink') return true
      links.push({ path, target: linkpath })
      return false
    },
    onReadEntry(entry) {
      // Nobody asked for a program that runs as its owner.
      if (entry.mode !== undefined) entry.mode &= 0o777
    },
    onwarn: collectIn(leftOut),
  })
  const whole = once(unpacking, 'close')
  // It may fail while nobody waits for it.
  whole.catch(() => {})
  return {
    /** Resolves when more can be taken. @throws when the archive is broken */
    async write(bytes: Buffer): Promise<void> {
      if (!unpacking.write(bytes)) await Promise.race([once(unpacking, 'drain'), whole])
    },
    /**
     * @returns what was not unpacked, each with why
     * @throws when the archive is broken or not whole
     */
    async end(): Promise<string[]> {
      unpacking.end()
      await whole
      return [...leftOut, ...makeLinks(folder, links)]
    },
  }
}

const collectIn =
  (leftOut: string[]) =>
  (code: string, message: string, data: object): void => {
    if (code === 'TAR_ENTRY_INFO') return
    const { entry } = data as { entry?: { path: string } }
    leftOut.push(entry === undefined ? message : `${entry.path}: ${message}`)
  }
