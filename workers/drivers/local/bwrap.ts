import type { Isolation } from './state.ts'

export interface SandboxPlan {
  isolation: Isolation
  home: string
  /** The sandbox's user ID on the host. Undefined unless the worker is root. */
  hostUid?: number | undefined
  /** Maximum size of a file, in bytes. */
  fileSize: number
  processes?: number | undefined
}

export interface SystemView {
  bwrap: string
  node: string
  code: string
  shown: string[]
  links: { target: string; path: string }[]
  /** Host folders that are hidden even if they are inside a folder in `shown`. */
  hidden: string[]
  etc: { source: string; path: string }[]
  /** Paths of the system call filters. Only `unsharing` allows the agent to create a user namespace. */
  filters?: { whole: string; unsharing: string } | undefined
}

export const sandboxUser = 10_001
const agentFiles = ['agent.mjs', 'terminal.mjs']
const tmpBytes = 64 * 1024 * 1024
/** PATH of all processes that the local driver starts. */
export const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const insideFolder = '/run/sandlot'
/** Folder for named pipes. It is in memory, so that a process can start when the disk is full. */
const pipesFolder = `${insideFolder}/pipes`
const pipesBytes = 4096
/** File descriptor of the agent's listening socket, which each agent inherits from outside the sandbox. */
const listenerFd = 3

/**
 * Runs as the sandbox's first process: restarts the agent whenever the agent exits, reaps orphans, and, on
 * SIGUSR1, kills all other processes with one signal.
 *
 * If the shell fails to fork, it exits, unless the failing command is wrapped in the `command` builtin. After
 * a kill, the sandbox may remain at its process limit until `jobs` has reaped the killed processes.
 */
const initScript = `ulimit -c 0
ulimit -f "$1" 2>/dev/null
[ -z "$2" ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2"
shift 2
exec >/dev/null 2>&1
trap 'kill -KILL -1' USR1
while :; do
  command eval '"$@" </dev/null & wait $!'
  jobs
  command eval 'sleep 0.1'
done`

export function sandboxCommand(plan: SandboxPlan, view: SystemView): string[] {
  const agent = [`${insideFolder}/node`, `${insideFolder}/agent.mjs`, String(listenerFd), pipesFolder]
  return [...isolate(plan, view), ...shell(initScript), ...limits(plan), ...becomeUser(plan), ...agent]
}

export function trialCommand(plan: SandboxPlan, view: SystemView): string[] {
  return [...isolate(plan, view), ...shell('"$@"'), ...becomeUser(plan), `${insideFolder}/node`, '-e', '0']
}

function isolate(plan: SandboxPlan, view: SystemView): string[] {
  return [
    ...filtered(plan, view),
    ...(plan.isolation === 'user'
      ? ['--unshare-user', '--uid', String(sandboxUser), '--gid', String(sandboxUser), '--cap-drop', 'ALL']
      : ['--cap-drop', 'ALL', ...['SETUID', 'SETGID', 'SETPCAP', 'KILL'].flatMap(keep)]),
    ...['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--hostname', 'sandbox', '--as-pid-1', '--die-with-parent', '--new-session'],
    ...view.shown.filter((path) => path.startsWith('/usr')).flatMap(show),
    ...view.hidden.filter((path) => isWithin(path, view.shown)).flatMap((path) => ['--tmpfs', path]),
    ...view.links.flatMap(({ target, path }) => ['--symlink', target, path]),
    // Parent folders that bwrap creates implicitly would be accessible only to root.
    ...['/etc', '/etc/ssl', '/nix', '/run', insideFolder].flatMap((path) => [
      '--perms',
      '0755',
      '--dir',
      path,
    ]),
    ...view.shown.filter((path) => !path.startsWith('/usr')).flatMap(show),
    ...view.etc.flatMap(({ source, path }) => ['--ro-bind', source, path]),
    ...['--proc', '/proc', '--dev', '/dev'],
    // The agent limits its user namespace here. Processes that have no capability in the namespace can only
    // read these files.
    ...(plan.isolation === 'root' ? ['--bind-try', '/proc/sys/user', '/proc/sys/user'] : []),
    ...tmpfs('/dev/shm'),
    ...tmpfs('/tmp'),
    ...['--ro-bind', view.node, `${insideFolder}/node`],
    ...agentFiles.flatMap((file) => ['--ro-bind', `${view.code}/${file}`, `${insideFolder}/${file}`]),
    ...tmpfs(pipesFolder, pipesBytes),
    ...['--bind', `${plan.home}/workspace`, '/workspace'],
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/'],
    ...['--clearenv', ...Object.entries(environment).flatMap((pair) => ['--setenv', ...pair])],
    ...['--json-status-fd', '4', '--'],
  ]
}

/**
 * Returns the command that runs bwrap with a system call filter. bwrap reads the filter from a file
 * descriptor that no other process inherits.
 */
function filtered({ isolation }: SandboxPlan, { bwrap, filters }: SystemView): string[] {
  if (!filters) return [bwrap]
  const filter = isolation === 'root' ? filters.unsharing : filters.whole
  return ['/bin/sh', '-c', 'exec 5<"$0" && exec "$@"', filter, bwrap, '--seccomp', '5']
}

/**
 * Runs the agent in a user namespace that cannot create other user namespaces. The outer namespace allows one
 * nested namespace, and the kernel counts nested namespaces at every level, so the agent's own namespace uses
 * up the allowance.
 */
const lastNamespaceScript = `echo 1 >/proc/sys/user/max_user_namespaces &&
exec unshare --user --map-user=${sandboxUser} --map-group=${sandboxUser} "$@"`

/**
 * Returns the commands that switch the agent to the sandbox's user. The first process keeps its user, because
 * the kernel would otherwise clear its parent-death signal.
 */
function becomeUser({ isolation, hostUid }: SandboxPlan): string[] {
  if (hostUid === undefined) return []
  const drop = ['setpriv', '--reuid', String(hostUid), '--regid', String(hostUid), '--clear-groups']
  const harden = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']
  if (isolation !== 'root') return [...drop, ...harden]
  return [...drop, ...harden, 'unshare', '--user', '--map-root-user', ...shell(lastNamespaceScript)]
}

const shell = (script: string) => ['/bin/sh', '-c', script, 'sh']
/** Returns the arguments for `ulimit`: the file size in blocks of 512 bytes, and the number of processes. */
const limits = ({ fileSize, processes }: SandboxPlan) => [
  String(Math.ceil(fileSize / 512)),
  String(processes ?? ''),
]
const keep = (capability: string) => ['--cap-add', `CAP_${capability}`]
const show = (path: string) => ['--ro-bind', path, path]
const tmpfs = (path: string, bytes = tmpBytes) => [
  '--perms',
  '1777',
  '--size',
  String(bytes),
  '--tmpfs',
  path,
]
const environment = { PATH: searchPath, HOME: '/workspace', LANG: 'C.UTF-8' }
const isWithin = (path: string, folders: string[]) => folders.some((folder) => path.startsWith(`${folder}/`))
