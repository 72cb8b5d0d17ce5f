/**
 * Builds the script that a shell in the sandbox evaluates to run one command. All client input in the script is
 * single-quoted. No client input appears in an argv that the cluster sees.
 */
import { posix } from 'node:path'
import { type StartError, startErrors } from '../../shared/contract/exec.ts'
import { quote } from '../../shared/contract/shell-words.ts'

/** A client's path as an argument. It can be given in bytes, because a path might not be valid UTF-8. */
export interface Path {
  path: string | Buffer
}

export interface ShellCommand {
  /** The program and its arguments. The program is found through PATH; it is never a shell builtin or function. */
  argv: readonly (string | Path)[]
  /**
   * The working directory, absolute or relative to `/workspace`. Defaults to `/workspace`, or to `/` if `/workspace`
   * cannot be entered.
   */
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  /** Whether the command's stdin is `/dev/null`. The slot's own stdin then needs no EOF. */
  noStdin?: boolean
}

const workspace = '/workspace'

/** Environment variables that Kubernetes sets in every container, even with service links disabled. */
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
 * Command line of a shell that waits in a pod for one script. The shell prints its pid, which is also its process group
 * ID. It then reads the script and evaluates it. The script is either a line, or a line with a length followed by that
 * many bytes. The rest of stdin belongs to the command. If an image exported an environment variable named `sandlot`,
 * the command would receive the script in its environment.
 */
export const shellThatWaits: readonly string[] = [
  '/bin/sh',
  '-c',
  'echo $$; IFS= read -r sandlot || exit; ' +
    'case $sandlot in [0-9]*) sandlot=$(dd bs="$sandlot" count=1 iflag=fullblock 2>/dev/null);; esac; eval "$sandlot"',
]

/**
 * Maximum size, in bytes, of a script that is sent as one line. Shells read a line byte by byte, and some of them alter
 * non-ASCII bytes. Other scripts are sent with their length and read by `dd`, which accounts for half of such a
 * command's start time.
 */
const maxLineBytes = 2_048

/**
 * Encodes a script for the waiting shell. The shell recognizes a length by its first digit; no script begins with a
 * digit.
 */
export function messageFor(script: Buffer): Buffer {
  const isLine = script.length <= maxLineBytes && script.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isLine
    ? Buffer.concat([script, Buffer.from('\n')])
    : Buffer.concat([Buffer.from(`${script.length}\n`), script])
}

/**
 * Converts client text to a latin1 string, in which each character represents one byte. Scripts are built from such
 * strings, because a path may contain any bytes.
 */
const toBytes = (text: string | Buffer): string =>
  (typeof text === 'string' ? Buffer.from(text) : text).toString('latin1')

/** Resolves a client's path against the workspace. */
export const absolute = (path: string): string => posix.resolve(workspace, path)

/**
 * Returns a path as a shell word. The workspace is written as `$HOME`, because it is not at `/workspace` in a local
 * sandbox without namespaces.
 */
const pathWord = (path: string | Buffer): string => {
  const whole = absolute(toBytes(path))
  const isInside = whole === workspace || whole.startsWith(`${workspace}/`)
  return isInside ? `"$HOME"${quote(whole.slice(workspace.length))}` : quote(whole)
}

/** First byte of the sentinels that the script prints at the end of the command's output. */
export const sentinelPrefix = '\x1e'

/** Text that the shell prints after the pid if the command runs in `/`, because the workspace could not be entered. */
export const inRoot = ' /'

/** Pattern of the {@link StartError} that may end the line that confirms a command's start. */
export const startErrorPattern = `(?: (${startErrors.join('|')}))?`

/**
 * Returns shell code that enters the working directory, and then prints a line. The line ends with a {@link StartError}
 * if the program cannot be executed. It is printed before the program starts, so the program cannot forge it. The
 * variables are named so that they replace no variable of the image.
 */
const enterAndPrint = (command: ShellCommand, line: string): string => {
  const enter =
    command.cwd === undefined
      ? `cd "$HOME" 2>/dev/null || { cd /; sandlot_at='${inRoot}'; }; ${checkProgram(command)}`
      : `if cd ${pathWord(command.cwd)} 2>/dev/null; then ${checkProgram(command)}; ` +
        `else sandlot_error=' ${'no_such_directory' satisfies StartError}'; fi`
  return `sandlot_at= sandlot_error=; ${enter}; echo ${line}"$sandlot_at$sandlot_error"`
}

/**
 * Returns shell code that sets `sandlot_error` if no file on the PATH can be executed as the program. It starts no
 * process. A name that `exec` would find elsewhere does not matter: an error counts only if the exit status confirms it.
 */
function checkProgram({ argv: [program], env }: ShellCommand): string {
  if (typeof program !== 'string' || program === '/bin/sh') return ':'
  const word = quote(toBytes(program))
  const path = env?.PATH
  const places =
    path === undefined
      ? '$PATH'
      : path
          .split(':')
          .map((at) => quote(toBytes(at)))
          .join(' ')
  const isPath = program.includes('/')
  return [
    `sandlot_error=' ${'not_found' satisfies StartError}'`,
    'sandlot_ifs=$IFS; IFS=:; set -f',
    `for sandlot_file in ${isPath ? word : places}; do ${isPath ? '' : `sandlot_file=\${sandlot_file:-.}/${word}; `}` +
      `[ -e "$sandlot_file" ] || continue; [ -d "$sandlot_file" ] || [ ! -x "$sandlot_file" ] || { sandlot_error=; break; }; ` +
      `sandlot_error=' ${'not_executable' satisfies StartError}'; done`,
    'IFS=$sandlot_ifs; set +f',
  ].join('; ')
}

/**
 * Builds the script for one command. The process that becomes the command first prints the sentinel and its pid. After
 * the command has exited, the script prints the sentinel on stdout, with the exit status, and on stderr. A background
 * child that keeps the streams open therefore delays neither of them.
 * @param sentinel unguessable string that marks the end of the output
 */
export function scriptFor(command: ShellCommand, sentinel: string): Buffer {
  const parts = [
    // The shell survives a signal to the group and reports how the command ended.
    'trap : TERM INT HUP QUIT USR1 USR2 ABRT ALRM BUS FPE ILL PIPE PROF SEGV SYS TRAP VTALRM XCPU XFSZ',
    // Keeps the shell's own message about a killed command out of the command's stderr.
    'exec 9>&2 2>/dev/null',
    `( read -r sandlot </proc/self/stat; ${enterAndPrint(command, `${sentinel} "\${sandlot%% *}"`)}; ${becomeCommand(command).join('; ')} ) ${command.noStdin ? '</dev/null ' : ''}2>&9 9>&-`,
    's=$?',
    `printf '\\036%s %s\\n' ${sentinel} "$s"`,
    `printf '\\036%s\\n' ${sentinel} >&9`,
    // The shell keeps running until the worker closes the connection. Kubernetes drops output in transit when a process
    // exits, and may never report the exit of one with much unread stdin. With stdin, the shell exits at the end of the
    // input, which may be earlier; a command with megabytes of slowly read output may then be `lost`.
    command.noStdin ? 'read -r _' : 'cat >/dev/null',
    'exit "$s"',
  ]
  return Buffer.from(parts.join('; '), 'latin1')
}

/**
 * Builds the content of a script file that a shell in a terminal runs. The script is not sent through the terminal,
 * because the terminal would echo it. The script deletes its file, prints its pid, waits for a line and then becomes
 * the command.
 */
export const terminalScriptFor = (command: ShellCommand): Buffer => {
  const wait = 'IFS= read -r _ || exit'
  const lines = ['rm -f "$0"', enterAndPrint(command, '$$'), wait, ...becomeCommand(command), '']
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
  // `exec` in bash and busybox would parse the name as an option, and `exec` in dash does not support `--`.
  if (variables.length === 0) return String(argv[0]).startsWith('-') ? `env -- ${words}` : words
  // `env` sets the variables, because a shell exits when it exports certain names (UID, PPID).
  const settings = variables.map(([name, value]) => quote(toBytes(`${name}=${value}`))).join(' ')
  // `env` would parse a command name that contains `=` as a variable.
  const through = String(argv[0]).includes('=') ? `/bin/sh -c 'exec "$@"' sh ` : ''
  return `env ${settings} ${through}${words}`
}
