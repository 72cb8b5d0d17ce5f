/**
 * The text that a shell in the sandbox evaluates to run one command. Everything of the user's is
 * single-quoted; nothing of it ever stands in an argv that the cluster sees.
 */
import { posix } from 'node:path'

/** An argument that is a client's path, and not merely text. */
export interface Path {
  path: string
}

export interface Command {
  /** Runs as it is, found through PATH: never a builtin or a function of the shell. */
  argv: readonly (string | Path)[]
  /** Relative to /workspace, or absolute. */
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
}

const workspace = '/workspace'

/** Kubernetes gives these to every container, with service links switched off too. */
const clusterVariables = [
  'KUBERNETES_PORT',
  'KUBERNETES_PORT_443_TCP',
  'KUBERNETES_PORT_443_TCP_ADDR',
  'KUBERNETES_PORT_443_TCP_PORT',
  'KUBERNETES_PORT_443_TCP_PROTO',
  'KUBERNETES_SERVICE_HOST',
  'KUBERNETES_SERVICE_PORT',
  'KUBERNETES_SERVICE_PORT_HTTPS',
].join(' ')

/**
 * Waits in a pod for one script: tells its pid, which leads its process group, reads a length and
 * that many bytes, and evaluates them. What follows on stdin is the command's.
 */
export const shellThatWaits: readonly string[] = [
  '/bin/sh',
  '-c',
  'echo $$; IFS= read -r n || exit; s=$(dd bs="$n" count=1 iflag=fullblock 2>/dev/null); eval "$s"',
]

export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** What a client's path means in a sandbox: relative ones are relative to the workspace. */
export const absolute = (path: string): string => posix.resolve(workspace, path)

/**
 * The same as a word of the shell. The workspace is `$HOME`: a local sandbox without namespaces
 * of its own cannot have it at its place.
 */
const pathWord = (path: string): string => {
  const whole = absolute(path)
  const isInside = whole === workspace || whole.startsWith(`${workspace}/`)
  return isInside ? `"$HOME"${quote(whole.slice(workspace.length))}` : quote(whole)
}

/** Starts each of the marks that the script prints around the command's output. */
export const markStart = '\x1e'

/**
 * @param mark unguessable text: the script prints it as a line before the command starts, and
 *   after it ended on both streams, on stdout with the status. A background child that holds the
 *   streams open delays neither.
 */
export function scriptFor(command: Command, mark: string): string {
  return [
    // A signal to the group ends the command; the shell lives on to tell how.
    'trap : TERM INT HUP',
    // Its own words about a command that was killed are no output of the command.
    'exec 9>&2 2>/dev/null',
    `echo ${mark}`,
    '(',
    `cd ${pathWord(command.cwd ?? '.')} || exit 126`,
    `unset ${clusterVariables}`,
    `exec ${invocation(command)}`,
    ') 2>&9 9>&-',
    's=$?',
    `printf '\\036%s %s\\n' ${mark} "$s"`,
    `printf '\\036%s\\n' ${mark} >&9`,
    // A process that ends with much of its stdin unread confuses container runtimes: the
    // connection breaks, or its end is never told. Whoever saw the marks closes the connection.
    'cat >/dev/null',
    'exit "$s"',
  ].join('\n')
}

function invocation({ argv, env }: Command): string {
  const words = argv.map((word) => (typeof word === 'string' ? quote(word) : pathWord(word.path))).join(' ')
  const variables = Object.entries(env ?? {})
  if (variables.length === 0) return words
  // `env` sets them, as some names end a shell that exports them (UID, PPID).
  const settings = variables.map(([name, value]) => quote(`${name}=${value}`)).join(' ')
  // A command whose name has a = would be taken for a variable.
  const through = String(argv[0]).includes('=') ? `/bin/sh -c 'exec "$@"' sh ` : ''
  return `env ${settings} ${through}${words}`
}
