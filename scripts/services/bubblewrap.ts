import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'

/**
 * Returns the path of `bwrap`, either installed on the system or downloaded in a Debian package. If it is not
 * available, reports how to install it and returns undefined.
 */
export async function findBubblewrap(report: (line: string) => void): Promise<string | undefined> {
  const installed = findProgram('bwrap')
  if (installed !== undefined) return installed
  const unpacked = await findDebianProgram({ package: 'bubblewrap', program: 'usr/bin/bwrap', report })
  if (unpacked !== undefined) return runnable(unpacked)
  const names = { debian: 'bubblewrap', fedora: 'bubblewrap', alpine: 'bubblewrap', arch: 'bubblewrap' }
  report(`Local sandboxes need bubblewrap, which is not installed.\n  Install it: ${installCommand(names)}`)
  return undefined
}

/**
 * Returns the path of a downloaded program or, if its libraries were downloaded as well, of a wrapper script
 * that sets LD_LIBRARY_PATH.
 */
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
