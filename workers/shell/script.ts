/**
 * The text that a shell in the sandbox evaluates to run one command. Everything of the user's is single-quoted, and
 * none of it stands in an argv that the cluster sees.
 */
import { posix } from 'node:path'
import { quote } from '../../shared/contract/shell-words.ts'

/** An argument that is a client's path and not just text; bytes, because it may not be UTF-8. */
export interface Path {
  path: string | Buffer
}

export interface ShellCommand {
  /** The program and its arguments. The program is found through PATH, and is never a builtin or a function of the shell. */
  argv: readonly (string | Path)[]
  /** Relative to /workspace, or absolute. By default /workspace, or / where that cannot be entered. */
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  /** Its stdin is /dev/null; its slot then needs no end of input. */
  noStdin?: boolean
}

const workspace = '/workspace'

/** Kubernetes sets these in every container, even with service links switched off. */
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
 * Waits in a pod for one script: prints its pid, which leads its process group, reads a line that is the script, or a
 * length and that many bytes, and evaluates it. What follows on stdin is the command's. The name of the variable is one
 * that no image exports: the command would get the script in its environment.
 */
export const shellThatWaits: readonly string[] = [
  '/bin/sh',
  '-c',
  'echo $$; IFS= read -r sandlot || exit; ' +
    'case $sandlot in [0-9]*) sandlot=$(dd bs="$sandlot" count=1 iflag=fullblock 2>/dev/null);; esac; eval "$sandlot"',
]

/**
 * Bytes of a script that is sent as one line; a longer one is sent by its length, through `dd`, which takes half of the
 * time to start a command. Shells read a line byte by byte, and some change bytes that are not ASCII.
 */
const maxOfLine = 2_048

/** What the waiting shell reads. No script begins with a digit. */
export function messageFor(script: Buffer): Buffer {
  const isLine = script.length <= maxOfLine && script.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isLine
    ? Buffer.concat([script, Buffer.from('\n')])
    : Buffer.concat([Buffer.from(`${script.length}\n`), script])
}

/**
 * A script is bytes, and a path may hold any. Within this file each character stands for one byte (latin1), and text
 * from clients is converted to that first.
 */
const toBytes = (text: string | Buffer): string =>
  (typeof text === 'string' ? Buffer.from(text) : text).toString('latin1')

/** A client's path as an absolute one: relative paths start at the workspace. */
export const absolute = (path: string): string => posix.resolve(workspace, path)

/** The same path as a shell word. The workspace is `$HOME`, because a local sandbox without namespaces has it elsewhere. */
const pathWord = (path: string | Buffer): string => {
  const whole = absolute(toBytes(path))
  const isInside = whole === workspace || whole.startsWith(`${workspace}/`)
  return isInside ? `"$HOME"${quote(whole.slice(workspace.length))}` : quote(whole)
}

/** The first byte of each mark that the script prints around the command's output. */
export const sentinelPrefix = '\x1e'

/** Follows the first line of a script when the workspace could not be entered, so that the command runs in `/`. */
export const inRoot = ' /'

/** Prints a line, after the attempt to enter the default directory. */
const enterAndSay = ({ cwd }: ShellCommand, line: string): string =>
  cwd === undefined
    ? `if cd "$HOME" 2>/dev/null; then echo ${line}; else cd /; echo ${line}${inRoot}; fi`
    : `echo ${line}`

/**
 * @param mark unguessable text. The process that becomes the command first prints it as a line with its pid. When that
 *   has ended, the script prints it on both streams, on stdout with the status. A background child that holds the
 *   streams open delays neither.
 */
export function scriptFor(command: ShellCommand, mark: string): Buffer {
  const parts = [
    // A signal to the group ends the command; the shell lives on to report it.
    'trap : TERM INT HUP QUIT USR1 USR2 ABRT ALRM BUS FPE ILL PIPE PROF SEGV SYS TRAP VTALRM XCPU XFSZ',
    // The shell's own message about a killed command is not the command's output.
    'exec 9>&2 2>/dev/null',
    `( read -r sandlot </proc/self/stat; ${enterAndSay(command, `${mark} "\${sandlot%% *}"`)}; ${becomeCommand(command).join('; ')} ) ${command.noStdin ? '</dev/null ' : ''}2>&9 9>&-`,
    's=$?',
    `printf '\\036%s %s\\n' ${mark} "$s"`,
    `printf '\\036%s\\n' ${mark} >&9`,
    // The shell stays until the worker closes the connection. Kubernetes drops output that is on its way when a process
    // ends, and may never report the end of one with much unread stdin. A command with stdin can end earlier, when its
    // input ends; with megabytes of slowly read output it may then be `lost`.
    command.noStdin ? 'read -r _' : 'cat >/dev/null',
    'exit "$s"',
  ]
  return Buffer.from(parts.join('; '), 'latin1')
}

/**
 * The content of a file that a shell on a terminal runs: what is written to a terminal is echoed, so the script cannot
 * be sent that way. It removes its file, prints its pid as a line, waits for a line, and becomes the command.
 */
export const terminalScriptFor = (command: ShellCommand): Buffer => {
  const wait = 'IFS= read -r _ || exit'
  const lines = ['rm -f "$0"', enterAndSay(command, '$$'), wait, ...becomeCommand(command), '']
  return Buffer.from(lines.join('\n'), 'latin1')
}

const becomeCommand = (command: ShellCommand): string[] => [
  ...(command.cwd === undefined ? [] : [`cd ${pathWord(command.cwd)} || exit 126`]),
  `unset ${clusterVariables}`,
  `exec ${invocation(command)}`,
]

function invocation({ argv, env }: ShellCommand): string {
  const words = argv
    .map((word) => (typeof word === 'string' ? quote(toBytes(word)) : pathWord(word.path)))
    .join(' ')
  const variables = Object.entries(env ?? {})
  // `exec` of bash and busybox would take the name for an option, and `exec` of dash takes no `--`.
  if (variables.length === 0) return String(argv[0]).startsWith('-') ? `env -- ${words}` : words
  // Set by `env`, because some names end a shell that exports them (UID, PPID).
  const settings = variables.map(([name, value]) => quote(toBytes(`${name}=${value}`))).join(' ')
  // `env` would take a command whose name has a = for a variable.
  const through = String(argv[0]).includes('=') ? `/bin/sh -c 'exec "$@"' sh ` : ''
  return `env ${settings} ${through}${words}`
}
