/** Collects the shared libraries that Node needs from the Debian packages installed on this machine. */
import { existsSync, lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { findProgram } from '../services/find-program.ts'
import { run } from '../services/run.ts'
import type { Part } from './sbom.ts'
import type { Entry } from './tar.ts'

/** Matches the paths of shared libraries. The server needs no other files from the Debian packages. */
const library = /^(?:\/usr)?\/lib(?:64)?\/(?:[\w-]+-linux-gnu\/)?[^/]+\.so\.[\d.]+$/

/**
 * @param architecture Debian's name for the architecture, such as `amd64`
 * @throws {Error} a user-facing error if this system has no dpkg, or if a package is not installed
 */
export async function readLibraries(architecture: string): Promise<{ entries: Entry[]; parts: Part[] }> {
  if (findProgram('dpkg-query') === undefined) {
    throw new Error(
      'The image needs the C library from Debian or Ubuntu, but this machine runs neither. Build the image in ' +
        'a container: docker build --file deploy/image/Dockerfile .',
    )
  }
  const found = await Promise.all(
    ['libc6', 'libgcc-s1', 'libstdc++6'].map((name) => readPackage(`${name}:${architecture}`)),
  )
  return { entries: found.flatMap(({ entries }) => entries), parts: found.map(({ part }) => part) }
}

async function readPackage(name: string): Promise<{ entries: Entry[]; part: Part }> {
  const ask = (what: string) => run(['dpkg-query', what, name])
  const [list, status] = await Promise.all([ask('--listfiles'), ask('--status')])
  const version = /^Version: (.*)$/m.exec(status)![1]!
  const [short, architecture] = name.split(':') as [string, string]
  const url = `pkg:deb/debian/${encodeURIComponent(short)}@${encodeURIComponent(version)}?arch=${architecture}`
  return {
    entries: [
      ...list
        .split('\n')
        .filter((path) => library.test(path))
        .map(readLibrary),
      { path: `usr/share/doc/${short}/copyright`, data: readCopyright(short, status) },
    ],
    part: { name: short, version, licence: undefined, purl: url },
  }
}

/**
 * Returns the license file of a package. The GCC libraries share the license file of `gcc-N-base`. If the
 * link to that file is missing, as in slim Debian images, the file itself is read.
 */
function readCopyright(name: string, status: string): Buffer {
  const base = /\bgcc-\d+-base\b/.exec(status) ?? []
  const place = [name, ...base].map((each) => `/usr/share/doc/${each}/copyright`).find(existsSync)
  if (place === undefined)
    throw new Error(
      `The license of ${name} is missing on this machine. Run: apt-get install --reinstall ${name}`,
    )
  return readFileSync(place)
}

/**
 * Returns a library or link as an entry of the image, in which /lib is a link to /usr/lib as in current
 * Debian releases.
 */
function readLibrary(path: string): Entry {
  const place = path.replace(/^\/(usr\/)?/, 'usr/')
  if (lstatSync(path).isSymbolicLink()) return { path: place, link: readlinkSync(path) }
  return { path: place, data: readFileSync(path), mode: 0o755 }
}
