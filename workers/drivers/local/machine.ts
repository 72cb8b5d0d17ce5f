/** Finds out, once in each worker, how well this machine can isolate a sandbox, and says so in plain words. */
import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Settings, SettingsError } from '../../../shared/platform/settings.ts'
import { type SandboxPlan, type SystemView, sandboxUser, trialCommand } from './bwrap.ts'
import { type CgroupParent, type Controller, findCgroupParents, type Limits } from './cgroup.ts'
import { readQuantity } from './quantity.ts'
import { buildFilter } from './seccomp.ts'
import type { Isolation } from './state.ts'

export interface Machine {
  isolation: Isolation
  /** Whether the worker is root, and every sandbox gets a uid of its own on the host. */
  isRoot: boolean
  cgroups: CgroupParent[]
  limits: Limits
  /** The largest file, in bytes. */
  fileSize: number
  view: SystemView
}

/** Processes of the agent and its helpers, beyond those of the user. */
const ownProcesses = 24

const remedy =
  'Install bubblewrap (apt-get install bubblewrap); on Ubuntu 24.04 and later also allow user namespaces ' +
  '(sysctl kernel.apparmor_restrict_unprivileged_userns=0); in a container, run it privileged; ' +
  'or use SANDBOX_DRIVER=kubernetes.'

const codeFolder = import.meta.dirname
const projectFolder = resolve(codeFolder, '../../..')

/** @throws {SettingsError} bubblewrap does not work, in words for an operator */
export function examineMachine(settings: Settings): Machine {
  const { directory } = settings.local
  const isRoot = process.getuid?.() === 0
  const limits: Limits = {
    cpu: readQuantity(settings.sandbox.limits.cpu),
    memory: readQuantity(settings.sandbox.limits.memory),
    pids: settings.sandbox.pids + ownProcesses,
  }
  const view = lookAround(directory, settings.local.bwrap ?? 'bwrap')
  const machine = {
    isRoot,
    cgroups: findCgroupParents(limits),
    limits,
    fileSize: readQuantity(settings.sandbox.limits.disk),
    view,
  }
  if (process.platform !== 'linux') throw refused('it is for Linux')
  let refusal = ''
  const views = view.filters ? [view, { ...view, filters: undefined }] : [view]
  for (const isolation of isRoot ? (['root', 'root-no-userns'] as const) : (['user'] as const)) {
    for (const view of views) {
      const words = tryIsolation(isolation, directory, { isRoot, view })
      if (words === undefined) return { ...machine, isolation, view }
      // bubblewrap's own message; that of a try with a filter may be a shell's.
      if (!view.filters) refusal ||= words
    }
  }
  throw refused(refusal)
}

const refused = (why: string) =>
  new SettingsError(`Local sandboxes have no walls here: bubblewrap does not work (${why}).\n${remedy}`)

export function describeIsolation({ isolation, cgroups, view }: Machine): string {
  const walls = {
    root: 'bubblewrap with namespaces of its own, no network, and a user of its own on the host',
    'root-no-userns': 'bubblewrap with namespaces of its own but that of users, and no network',
    user: 'bubblewrap with namespaces of its own and no network',
  }[isolation]
  const limited = cgroups.flatMap((parent) => parent.controllers).sort()
  const filter = view.filters ? ', and a filter of system calls' : ''
  return `${walls}${filter}; limits of ${limited.length === 0 ? 'nothing' : limited.join(', ')} by control groups`
}

/** What is weaker than on Kubernetes and what can be done about it, a sentence each. */
export function listWeaknesses(machine: Machine): string[] {
  const { isolation, cgroups, isRoot, view } = machine
  const limited = new Set<Controller>(cgroups.flatMap((parent) => parent.controllers))
  const missing = (['cpu', 'memory', 'pids'] as const).filter((controller) => !limited.has(controller))
  const weaknesses = [
    !view.filters &&
      'No system calls are filtered: there is no filter for this processor, or bubblewrap takes none.',
    isolation === 'root-no-userns' &&
      'Sandboxes have no user namespace of their own: this kernel lets ordinary users make none (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns).',
    missing.length > 0 &&
      `Nothing limits the ${missing.join(', ')} of a sandbox${missing.includes('pids') && isolation === 'user' ? ' (pids: by ulimit alone)' : ''}: no control group can be made. Run as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes).`,
    'The disk a sandbox fills is limited for each file, not in all: it shares the disk of the folder that holds it. ' +
      'One that holds more than SANDBOX_INODES files is ended within seconds' +
      (isRoot ? '.' : '; those in folders that it closes to itself are not seen.'),
  ]
  return weaknesses.filter((weakness) => weakness !== false)
}

/** @returns undefined when it works, otherwise what went wrong */
function tryIsolation(
  isolation: Isolation,
  directory: string,
  { isRoot, view }: Pick<Machine, 'isRoot' | 'view'>,
): string | undefined {
  const home = mkdtempSync(join(directory, '.trial-'))
  try {
    const hostUid = isRoot ? pickHostUid(readUidMap()) : undefined
    const workspace = join(home, 'workspace')
    mkdirSync(workspace, { mode: 0o700 })
    if (hostUid !== undefined) chownSync(workspace, hostUid, hostUid)
    const plan: SandboxPlan = { isolation, home, hostUid, fileSize: 0 }
    const [file, ...args] = trialCommand(plan, view)
    const trial = spawnSync(file!, args, {
      stdio: ['ignore', 'ignore', 'pipe', 'ignore', 'pipe'],
      encoding: 'utf8',
      timeout: 10_000,
      killSignal: 'SIGKILL',
    })
    if (trial.error) return trial.error.message
    return trial.status === 0 ? undefined : trial.stderr.trim() || `it ended with ${trial.status}`
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function lookAround(directory: string, bwrap: string): SystemView {
  const roots = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
  const present = roots.filter((path) => existsSync(path))
  const isLink = (path: string) => lstatSync(path).isSymbolicLink()
  const configuration = [
    'alternatives',
    'ca-certificates',
    'debian_version',
    'fonts',
    'ld.so.cache',
    'ld.so.conf',
    'ld.so.conf.d',
    'localtime',
    'magic',
    'mime.types',
    'os-release',
    'perl',
    'protocols',
    'services',
    'ssl/certs',
    'timezone',
  ].map((name) => `/etc/${name}`)
  return {
    bwrap,
    node: process.execPath,
    code: codeFolder,
    shown: [
      '/usr',
      ...present.filter((path) => !isLink(path)),
      ...['/nix/store', ...configuration].filter((path) => existsSync(path)),
    ],
    links: present.filter(isLink).map((path) => ({ target: readlinkSync(path), path })),
    hidden: [projectFolder, directory, homedir()],
    etc: writeEtc(directory),
    filters: writeFilters(directory),
  }
}

/** Undefined where no filter is known for this processor. */
function writeFilters(directory: string): SystemView['filters'] {
  const whole = buildFilter(process.arch)
  const unsharing = buildFilter(process.arch, { mayUnshareUser: true })
  if (!whole || !unsharing) return undefined
  const folder = join(directory, '.seccomp')
  mkdirSync(folder, { recursive: true })
  const keep = (name: string, bytes: Buffer) => writeWhole(join(folder, name), bytes)
  return { whole: keep('whole', whole), unsharing: keep('unsharing', unsharing) }
}

/** Writes a file whole: other workers may be writing the same one. */
function writeWhole(path: string, content: string | Buffer): string {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, content, { mode: 0o644 })
  renameSync(draft, path)
  return path
}

/** Writes an /etc that tells a sandbox nothing of the machine's users and names. */
function writeEtc(directory: string): SystemView['etc'] {
  const files = {
    passwd: `root:x:0:0:root:/root:/bin/sh\nsandbox:x:${sandboxUser}:${sandboxUser}::/workspace:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n`,
    group: `root:x:0:\nsandbox:x:${sandboxUser}:\nnogroup:x:65534:\n`,
    hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
    'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
    'resolv.conf': '',
  }
  const folder = join(directory, '.etc')
  mkdirSync(folder, { recursive: true })
  return Object.entries(files).map(([name, text]) => {
    return { source: writeWhole(join(folder, name), text), path: `/etc/${name}` }
  })
}

/**
 * A uid that no user of the machine has and, among so many, most likely no other sandbox. Pure but for chance.
 * @param map the content of /proc/self/uid_map: in a container, few uids may exist
 */
export function pickHostUid(map: string, random = Math.random()): number {
  const ranges = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number, number])
  const [first, , size] = ranges.reduce((best, range) => (range[2] > best[2] ? range : best))
  const last = Math.min(first + size, 2 ** 31) - 1
  // From the upper half of the uids.
  return last - Math.floor((random * (last - first)) / 2)
}

export function readUidMap(): string {
  return existsSync('/proc/self/uid_map') ? readFileSync('/proc/self/uid_map', 'utf8') : '0 0 4294967295'
}
