import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'

/** Finds `bwrap` on the system or in a Debian package. Otherwise, reports how to install it and returns undefined. */
export async function findBubblewrap(report: (line: string) => void): Promise<string | undefined> {
  const installed = findProgram('bwrap')
  if (installed !== undefined) return installed
  const unpacked = await findDebianProgram({ package: 'bubblewrap', program: 'usr/bin/bwrap', report })
  if (unpacked !== undefined) return runnable(unpacked)
  const names = { debian: 'bubblewrap', fedora: 'bubblewrap', alpine: 'bubblewrap', arch: 'bubblewrap' }
  report(`Local sandboxes need bubblewrap, which is not installed.\n  Install it: ${installCommand(names)}`)
  return undefined
}

/** If libraries were downloaded as well, returns the path of a wrapper script that sets LD_LIBRARY_PATH. */
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
