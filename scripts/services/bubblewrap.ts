/** bubblewrap, which isolates the sandboxes of the local driver. */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'

/**
 * Returns the path of `bwrap`, installed or from Debian's package. Without either, it prints how to install it and
 * returns undefined.
 */
export async function findBubblewrap(report: (line: string) => void): Promise<string | undefined> {
  const installed = findProgram('bwrap')
  if (installed !== undefined) return installed
  const unpacked = await findDebianProgram({ package: 'bubblewrap', program: 'usr/bin/bwrap', report })
  if (unpacked !== undefined) return runnable(unpacked)
  const names = { debian: 'bubblewrap', fedora: 'bubblewrap', alpine: 'bubblewrap', arch: 'bubblewrap' }
  report(`bubblewrap is missing, and local sandboxes need it.\n  Install it: ${installCommand(names)}`)
  return undefined
}

/** Most machines have its libraries. If they were also fetched, a wrapper script sets their folder. */
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
