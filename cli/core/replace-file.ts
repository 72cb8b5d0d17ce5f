import { chmodSync, readlinkSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Maximum number of symbolic links to follow, as in Linux. */
const maxLinks = 40

/** Resolves the symbolic links in a path. The file does not have to exist. @throws the file system's error */
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

/** Replaces a file atomically. The umask does not affect `mode`. */
export function replaceFile(file: string, text: string, mode: number): void {
  const temporary = `${file}.${crypto.randomUUID()}`
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600, flush: true })
    chmodSync(temporary, mode)
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
