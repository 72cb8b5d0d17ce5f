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
import { buildFilter } from './seccomp.ts'
import type { Isolation } from './state.ts'

export interface Machine {
  isolation: Isolation
  /** Whether the worker runs as root. If so, every sandbox has a separate user ID on the host. */
  isRoot: boolean
  cgroups: CgroupParent[]
  limits: Limits
  /** Maximum size of a file, in bytes. */
  fileSize: number
  view: SystemView
}

/** Number of processes that the agent and its helpers need, in addition to the user's processes. */
const agentProcesses = 24

const remedy =
  'Install bubblewrap (apt-get install bubblewrap). On Ubuntu 24.04 and later, also allow user namespaces ' +
  '(sysctl kernel.apparmor_restrict_unprivileged_userns=0). In a container, use privileged mode. ' +
  'To run sandboxes on Kubernetes instead, set SANDBOX_DRIVER=kubernetes.'

const codeFolder = import.meta.dirname
const projectFolder = resolve(codeFolder, '../../..')

/**
 * Determines how this machine can isolate and limit sandboxes.
 * @throws {SettingsError} if bubblewrap does not work; the message contains the remedy
 */
export function examineMachine(settings: Settings): Machine {
  const { directory } = settings.local
  const isRoot = process.getuid?.() === 0
  const limits: Limits = {
    cpu: readQuantity(settings.sandbox.limits.cpu),
    memory: readQuantity(settings.sandbox.limits.memory),
    pids: settings.sandbox.pids + agentProcesses,
  }
  const view = readSystemView(directory, settings.local.bwrap ?? 'bwrap')
  const machine = {
    isRoot,
    cgroups: findCgroupParents(limits),
    limits,
    fileSize: readQuantity(settings.sandbox.limits.disk),
    view,
  }
  if (process.platform !== 'linux') throw unusable('it requires Linux')
  let failure = ''
  const views = view.filters ? [view, { ...view, filters: undefined }] : [view]
  for (const isolation of isRoot ? (['root', 'root-no-userns'] as const) : (['user'] as const)) {
    for (const view of views) {
      const message = tryIsolation(isolation, directory, { isRoot, view })
      if (message === undefined) return { ...machine, isolation, view }
      // Without a filter, the message comes from bubblewrap. With a filter, it may come from the shell.
      if (!view.filters) failure ||= message
    }
  }
  throw unusable(failure)
}

const unusable = (why: string) =>
  new SettingsError(`Local sandboxes cannot be isolated: bubblewrap does not work (${why}).\n${remedy}`)

export function describeIsolation({ isolation, cgroups, view }: Machine): string {
  const namespaces = {
    root: 'bubblewrap with separate namespaces, no network, and a separate user on the host',
    'root-no-userns': 'bubblewrap with separate namespaces except for users, and no network',
    user: 'bubblewrap with separate namespaces and no network',
  }[isolation]
  const limited = cgroups.flatMap((parent) => parent.controllers).sort()
  const filter = view.filters ? ', and a system call filter' : ''
  return `${namespaces}${filter}; control groups limit ${limited.length === 0 ? 'nothing' : limited.join(', ')}`
}

export function listWeaknesses(machine: Machine): string[] {
  const { isolation, cgroups, isRoot, view } = machine
  const limited = new Set<Controller>(cgroups.flatMap((parent) => parent.controllers))
  const missing = (['cpu', 'memory', 'pids'] as const).filter((controller) => !limited.has(controller))
  const weaknesses = [
    !view.filters &&
      'System calls are not filtered, because there is no filter for this processor, or bubblewrap does not support filters.',
    isolation === 'root-no-userns' &&
      'Sandboxes have no separate user namespace, because this kernel does not allow ordinary users to create one (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns).',
    missing.length > 0 &&
      `Sandboxes have no limit on ${missing.join(', ')}${missing.includes('pids') && isolation === 'user' ? ' (pids: only by ulimit)' : ''}, because no control group can be created. Run Sandlot as root, or in a delegated control group (systemd-run --user --scope -p Delegate=yes).`,
    'The disk limit applies to each file, not to a sandbox as a whole: all sandboxes share the disk of their folder. ' +
      'A sandbox with more than SANDBOX_INODES files is ended within seconds' +
      (isRoot ? '.' : '; files in unreadable folders are not counted.'),
  ]
  return weaknesses.filter((weakness) => weakness !== false)
}

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
    return trial.status === 0 ? undefined : trial.stderr.trim() || `it exited with ${trial.status}`
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function readSystemView(directory: string, bwrap: string): SystemView {
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

function writeFilters(directory: string): SystemView['filters'] {
  const whole = buildFilter(process.arch)
  const unsharing = buildFilter(process.arch, { mayUnshareUser: true })
  if (!whole || !unsharing) return undefined
  const folder = join(directory, '.seccomp')
  mkdirSync(folder, { recursive: true })
  const write = (name: string, bytes: Buffer) => writeAtomically(join(folder, name), bytes)
  return { whole: write('whole', whole), unsharing: write('unsharing', unsharing) }
}

/** Writes a file atomically, because other workers may be writing the same file at the same time. */
function writeAtomically(path: string, content: string | Buffer): string {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, content, { mode: 0o644 })
  renameSync(draft, path)
  return path
}

/** Writes the /etc files that sandboxes see. These files do not reveal the host's users or host names. */
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
    return { source: writeAtomically(join(folder, name), text), path: `/etc/${name}` }
  })
}

/**
 * Picks a random user ID that no user of this machine has.
 * @param map the contents of `/proc/self/uid_map`, because a container may have only a few user IDs
 */
export function pickHostUid(map: string, random = Math.random()): number {
  const ranges = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number, number])
  const [first, , size] = ranges.reduce((best, range) => (range[2] > best[2] ? range : best))
  const last = Math.min(first + size, 2 ** 31) - 1
  return last - Math.floor((random * (last - first)) / 2)
}

const unitFactors: Record<string, number> = {
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** Parses a Kubernetes quantity. For example, `500m` is 0.5 and `512Mi` is 536,870,912. */
export function readQuantity(text: string): number {
  const [, digits, unit] = /^([\d.]+)([A-Za-z]*)$/.exec(text) ?? []
  const factor = unitFactors[unit ?? '']
  if (digits === undefined || factor === undefined) throw new Error(`not a quantity: ${text}`)
  return Number(digits) * factor
}

export function readUidMap(): string {
  return existsSync('/proc/self/uid_map') ? readFileSync('/proc/self/uid_map', 'utf8') : '0 0 4294967295'
}
