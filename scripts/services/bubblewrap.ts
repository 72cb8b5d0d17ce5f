/** bubblewrap, which isolates the sandboxes of the local driver. */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'

/**
 * The path of the program `bwrap`: the installed one, or that of Debian's package. Without either, it prints how to
 * install one and returns undefined.
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

/** Nearly every Debian has its libraries. If they were fetched too, a wrapper names their folder. */
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
