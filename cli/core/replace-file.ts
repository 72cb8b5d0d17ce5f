/** Writes a file whole or not at all. */
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Linux follows as many. */
const maxLinks = 40

/**
 * The file to replace so that symbolic links to it remain, also links to a file that does not exist yet.
 * @throws whatever the file system says, such as for a link into a folder that does not exist
 */
export function followLinks(file: string): string {
  let path = file
  for (let links = 0; links < maxLinks; links++) {
    path = join(realpathSync(dirname(path)), basename(path))
    const target = targetOf(path)
    if (target === undefined) return path
    path = resolve(dirname(path), target)
  }
  throw new Error(`too many symbolic links: ${file}`)
}

/** undefined for anything but a symbolic link. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (['EINVAL', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** @param mode of the new file, regardless of the old file's mode and the umask */
export function replaceFile(file: string, text: string, mode: number): void {
  // A mode given at creation does nothing to a file that exists, and is cut by the umask: so a new
  // file, always, that nobody else can read until it is done.
  const temporary = `${file}.${crypto.randomUUID()}`
  try {
    const descriptor = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(descriptor, text)
      fchmodSync(descriptor, mode)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
