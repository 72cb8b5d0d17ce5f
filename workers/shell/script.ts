/**
 * Builds the scripts that run commands. Client input in them is always single-quoted. It reaches the shell on
 * stdin or in a file, because the cluster may log the argv of the processes that it starts.
 */
import { posix } from 'node:path'
import { quote } from '../../shared/contract/shell-words.ts'

/** A path, as bytes if it is not valid UTF-8. */
export interface Path {
  path: string | Buffer
}

export interface ShellCommand {
  /**
   * The program and its arguments. The program is looked up in PATH; it is never a shell builtin or function.
   */
  argv: readonly (string | Path)[]
  /** Working directory. Defaults to `/workspace`, or to `/` if `/workspace` cannot be entered. */
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  /** Whether the command's stdin is `/dev/null`. The slot's shell then runs until the worker closes it. */
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
 * The command line of a slot's shell. The shell prints its pid, which is also its process group ID, then
 * waits for a script on stdin and evaluates it. If the first line contains a number, it is the length of the
 * script that follows; otherwise, the line is the script. The rest of stdin belongs to the command.
 */
export const shellThatWaits: readonly string[] = [
  '/bin/sh',
  '-c',
  'echo $$; IFS= read -r sandlot || exit; ' +
    'case $sandlot in [0-9]*) sandlot=$(dd bs="$sandlot" count=1 iflag=fullblock 2>/dev/null);; esac; eval "$sandlot"',
]

/**
 * Maximum size of a script that is sent as one line, which the shell reads byte by byte. Longer scripts are
 * read with `dd`, which then accounts for half of the command's startup time.
 */
const maxLineBytes = 2_048

/**
 * Returns the message that passes a script to a waiting shell. A leading digit marks a length, because no
 * script begins with a digit.
 */
export function messageFor(script: Buffer): Buffer {
  const isLine = script.length <= maxLineBytes && script.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isLine
    ? Buffer.concat([script, Buffer.from('\n')])
    : Buffer.concat([Buffer.from(`${script.length}\n`), script])
}

const toBytes = (text: string | Buffer): string =>
  (typeof text === 'string' ? Buffer.from(text) : text).toString('latin1')

export const absolute = (path: string): string => posix.resolve(workspace, path)

const pathWord = (path: string | Buffer): string => quote(absolute(toBytes(path)))

export const sentinelPrefix = '\x1e'

/**
 * Returns shell code that enters the working directory and prints the pid, which the variable `sandlot`
 * contains. Appends ` /` if the directory cannot be entered, and ` !` if no executable program was found.
 */
const enterAndPrint = (command: ShellCommand, prefix = ''): string => {
  const note = (mark: string) => `sandlot="$sandlot ${mark}"`
  const enter =
    command.cwd === undefined
      ? `cd "$HOME" 2>/dev/null || { cd /; ${note('/')}; }`
      : `cd ${pathWord(command.cwd)} 2>/dev/null || ${note('/')}`
  const [program] = command.argv
  // The shell itself is /bin/sh.
  const isKnown = typeof program !== 'string' || program === '/bin/sh'
  const check = isKnown ? '' : `${isExecutable(program, command.env?.PATH)} || ${note('!')}; `
  return `${enter}; ${check}echo "${prefix}$sandlot"`
}

/**
 * Matches the text that {@link enterAndPrint} prints after its prefix. The pid is missing if `/proc` is
 * unreadable.
 */
export const startedLine = /^([1-9]\d{0,9})?( \/)?( !)?\r?$/

/**
 * Returns a shell condition that checks whether the program can be executed. The condition starts no process,
 * and sets no variable that the program would inherit.
 */
function isExecutable(program: string, path: string | undefined): string {
  const word = quote(toBytes(program))
  const isFile = '[ -f "$2" ] && [ -x "$2" ]'
  if (program.includes('/')) return `set -- '' ${word}; ${isFile}`
  const places = path === undefined ? '"$PATH:"' : quote(toBytes(`${path}:`))
  const next = `set -- "\${1#*:}" "\${1%%:*}"; set -- "$1" "\${2:-.}"/${word}`
  return `set -- ${places}; while [ "$1" ]; do ${next}; ${isFile} && break; done`
}

/**
 * Returns the script that runs a command. Before the command starts, the script prints the sentinel and the
 * command's pid. When the command exits, it prints the sentinel on both streams, with the exit status on
 * stdout, even if a background child keeps the streams open.
 */
export function scriptFor(command: ShellCommand, sentinel: string): Buffer {
  const parts = [
    // The shell survives signals to the group, so that it can report the exit status.
    'trap : TERM INT HUP QUIT USR1 USR2 ABRT ALRM BUS FPE ILL PIPE PROF SEGV SYS TRAP VTALRM XCPU XFSZ',
    // Keeps the shell's message about a killed command out of the command's stderr.
    'exec 9>&2 2>/dev/null',
    `( read -r sandlot </proc/self/stat; sandlot=\${sandlot%% *}; ${enterAndPrint(command, `${sentinel} `)}; ${becomeCommand(command).join('; ')} ) ${command.noStdin ? '</dev/null ' : ''}2>&9 9>&-`,
    's=$?',
    `printf '\\036%s %s\\n' ${sentinel} "$s"`,
    `printf '\\036%s\\n' ${sentinel} >&9`,
    // The shell waits until the worker closes the connection, because Kubernetes drops output in transit when
    // a process exits. With stdin, the shell may exit earlier, at the end of the input; a command with
    // megabytes of slowly read output may then be `lost`.
    command.noStdin ? 'read -r _' : 'cat >/dev/null',
    'exit "$s"',
  ]
  return Buffer.from(parts.join('; '), 'latin1')
}

/**
 * Returns the script that runs a command in a terminal. A shell reads it from a file, because a terminal
 * would echo it.
 */
export const terminalScriptFor = (command: ShellCommand): Buffer => {
  const wait = 'IFS= read -r _ || exit'
  const lines = ['rm -f "$0"', 'sandlot=$$', enterAndPrint(command), wait, ...becomeCommand(command), '']
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
  // `exec` in bash and busybox would parse such a name as an option, and `exec` in dash does not support
  // `--`.
  if (variables.length === 0) return String(argv[0]).startsWith('-') ? `env -- ${words}` : words
  // `env` sets the variables, because a shell exits when it exports certain names (UID, PPID).
  const settings = variables.map(([name, value]) => quote(toBytes(`${name}=${value}`))).join(' ')
  // `env` would parse a command name that contains `=` as a variable.
  const through = String(argv[0]).includes('=') ? `/bin/sh -c 'exec "$@"' sh ` : ''
  return `env ${settings} ${through}${words}`
}
