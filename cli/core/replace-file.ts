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

/** Maximum number of symbolic links to follow, as in Linux. */
const maxLinks = 40

/**
 * Resolves symbolic links. The resulting file does not have to exist.
 * @throws the file system's error, for example if a target's folder does not exist
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

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (['EINVAL', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/**
 * Replaces a file atomically.
 * @param mode permissions of the new file, regardless of the old file and the umask
 */
export function replaceFile(file: string, text: string, mode: number): void {
  // Uses fchmod for the mode, because open() applies the umask.
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
