/**
 * Downloads Debian packages into a cache folder to use the programs in them. apt verifies the packages, and
 * no root access is required.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { findProgram } from './find-program.ts'
import { run } from './run.ts'

export interface DebianProgram {
  path: string
  environment: Record<string, string>
}

interface WantedPackage {
  package: string
  program: string
  /** Name under which to start the program, if it differs from the file name. */
  as?: string
  report: (line: string) => void
}

/**
 * Returns a program from the cache, after downloading its package if necessary. Returns undefined if the
 * system has no apt, or if the download fails, in which case it reports the error.
 */
export async function findDebianProgram(wanted: WantedPackage): Promise<DebianProgram | undefined> {
  if (['apt-get', 'dpkg', 'dpkg-deb'].some((tool) => findProgram(tool) === undefined)) return undefined
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const cache = join(caches, 'sandlot', 'debian', await release())
  const folder = join(cache, wanted.package)
  try {
    if (!existsSync(folder)) await fetchInto(folder, cache, wanted)
    return locate(folder, wanted)
  } catch (error) {
    wanted.report(`Could not download the Debian package ${wanted.package}: ${(error as Error).message}`)
    return undefined
  }
}

/** Returns the command that installs a package with this system's package manager. */
export function installCommand(names: {
  debian: string
  fedora: string
  alpine: string
  arch: string
  brew?: string
}): string {
  if (findProgram('apt-get')) return `sudo apt-get install ${names.debian}`
  if (findProgram('dnf')) return `sudo dnf install ${names.fedora}`
  if (findProgram('apk')) return `sudo apk add ${names.alpine}`
  if (findProgram('pacman')) return `sudo pacman -S ${names.arch}`
  if (process.platform === 'darwin' && names.brew) return `brew install ${names.brew}`
  return `with your system's package manager (the package is called ${names.debian})`
}

/**
 * Returns the distribution, release and architecture, such as `debian-12-amd64`. They determine which
 * binaries can run here.
 */
async function release(): Promise<string> {
  const architecture = (await run(['dpkg', '--print-architecture'])).trim()
  const system = await run(['sh', '-c', '. /etc/os-release; echo "$ID-$VERSION_ID"'])
  return `${system.trim()}-${architecture}`
}

async function fetchInto(folder: string, cache: string, wanted: WantedPackage) {
  wanted.report(`Downloading the Debian package ${wanted.package} to ${cache}. This happens only once ...`)
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  const work = mkdtempSync(join(cache, `${wanted.package}.`))
  try {
    const packages = await download(wanted.package, work, join(cache, 'apt'))
    for (const file of packages) await run(['dpkg-deb', '-x', file, join(work, 'root')])
    const program = join(work, 'root', wanted.program)
    if (!existsSync(program)) throw new Error(`it does not contain ${wanted.program}`)
    if (wanted.as !== undefined) symlinkSync(basename(program), join(program, '..', wanted.as))
    // The renamed folder is complete at once. Another process may have created it first.
    if (!existsSync(folder)) renameSync(join(work, 'root'), folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Downloads a package and its missing dependencies. Returns the paths of the .deb files. */
async function download(name: string, work: string, aptFolder: string): Promise<string[]> {
  try {
    return await downloadWith([], name, work)
  } catch {
    // The system's package lists are missing or outdated, so this downloads separate lists.
    const lists = join(aptFolder, 'lists')
    mkdirSync(join(lists, 'partial'), { recursive: true })
    const options = ['-o', `Dir::State::lists=${lists}`]
    await run(apt(work, [...options, 'update']), { cwd: work, environment: quiet() })
    return await downloadWith(options, name, work)
  }
}

async function downloadWith(options: string[], name: string, work: string): Promise<string[]> {
  const simulate = ['--simulate', '--no-install-recommends', 'install', name]
  const plan = await run(apt(work, [...options, ...simulate]), { cwd: work, environment: quiet() })
  // Matches lines such as `Inst redis-tools (5:7.0.15-1 Debian:12.5/stable [amd64])`.
  const missing = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)].map(
    (line) => `${line[1]}=${line[2]}`,
  )
  if (missing.length === 0) throw new Error(`apt cannot install ${name}`)
  await run(apt(work, [...options, 'download', ...missing]), { cwd: work, environment: quiet() })
  return readdirSync(work)
    .filter((file) => file.endsWith('.deb'))
    .map((file) => join(work, file))
}

/**
 * Returns an apt-get command that uses `work` as its cache. As root, apt-get would otherwise switch to a user
 * without access to that folder.
 */
function apt(work: string, args: string[]): string[] {
  const options = [`Dir::Cache=${work}`, 'APT::Sandbox::User=', 'Debug::NoLocking=true']
  return ['apt-get', ...options.flatMap((option) => ['-o', option]), ...args]
}

function quiet() {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
}

function locate(folder: string, wanted: WantedPackage): DebianProgram {
  const program = join(folder, wanted.program)
  const libraries = libraryFolders(folder)
  return {
    path: wanted.as === undefined ? program : join(program, '..', wanted.as),
    environment: libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(':') },
  }
}

/** Returns the folders with downloaded shared libraries, such as `usr/lib/x86_64-linux-gnu`. */
function libraryFolders(folder: string): string[] {
  const files = ['usr/lib', 'lib']
    .map((place) => join(folder, place))
    .filter((place) => existsSync(place))
    .flatMap((place) => readdirSync(place, { withFileTypes: true, recursive: true }))
  return [...new Set(files.filter(({ name }) => /\.so(\.|$)/.test(name)).map((file) => file.parentPath))]
}
