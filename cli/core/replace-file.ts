/** Writes a file whole or not at all. */
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'

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
