/** bubblewrap, which isolates the sandboxes of the local driver. */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'

/**
 * The path of the program `bwrap`: this machine's, or out of Debian's package. Where there is
 * none it says how to get it and returns undefined.
 */
export async function findBubblewrap(say: (line: string) => void): Promise<string | undefined> {
  const installed = findProgram('bwrap')
  if (installed !== undefined) return installed
  const unpacked = await findDebianProgram({ package: 'bubblewrap', program: 'usr/bin/bwrap', say })
  if (unpacked !== undefined) return runnable(unpacked)
  const names = { debian: 'bubblewrap', fedora: 'bubblewrap', alpine: 'bubblewrap', arch: 'bubblewrap' }
  say(`bubblewrap is missing: without it no local sandbox runs.\n  Install it: ${installCommand(names)}`)
  return undefined
}

/** Its libraries are part of nearly every Debian; where they came along, a wrapper finds them. */
function runnable({ path, environment }: DebianProgram): string {
  const libraries = environment.LD_LIBRARY_PATH
  if (libraries === undefined) return path
  const wrapper = `${path}-with-libraries`
  if (!existsSync(wrapper)) {
    const script = `#!/bin/sh\nLD_LIBRARY_PATH='${libraries}' exec '${path}' "$@"\n`
    writeFileSync(`${wrapper}.${process.pid}`, script, { mode: 0o755 })
    renameSync(`${wrapper}.${process.pid}`, wrapper)
  }
  return wrapper
}
