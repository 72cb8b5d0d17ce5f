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
  /**
   * Whether the command's stdin is `/dev/null`. The slot's shell then keeps running, and may run another
   * command.
   */
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
 * Shell functions that the scripts below call. They start no process, and set no variable that the command
 * would inherit.
 *
 * `find_pid` stores the pid of the process in `sandlot`, or nothing if `/proc` is unreadable.
 *
 * `is_program PROGRAM PATH` tests whether a program can be executed.
 *
 * `begin PREFIX DIRECTORY [PROGRAM [PATH]]` enters a directory, or the home directory if DIRECTORY is empty. It
 * prints the prefix and the pid in `sandlot`, then ` /` if the directory cannot be entered, and ` !` if the
 * program cannot be executed.
 *
 * `finish SENTINEL` prints the sentinel on both streams, and the exit status of the previous command on stdout.
 *
 * `reopen FD` opens one of the shell's streams again if the command has made it non-blocking, or if that cannot be
 * determined. Otherwise, output would be lost while the reader is slow. Fails if the stream cannot be opened.
 *
 * `note_processes` stores the paths of all processes in `sandlot_before`.
 *
 * `find_left` tests whether the command has left a process that might still write to the shell's output. It
 * ignores the processes in `sandlot_before`, and the sessions that these and the shells of new slots lead. The
 * shells of slots have the same parent, which adopts no orphans. Returns 0 if it has found a process, 1 if not,
 * and 2 if a process that might have started another ended during the test.
 *
 * `await_next` returns if the shell can run another command, after it has printed its pid on stderr. Otherwise,
 * it prints `-` on both streams and waits to be closed, because Kubernetes drops output in transit when a
 * process exits.
 */
const functions = `find_pid() {
  sandlot=
  while read -r sandlot; do
    case $sandlot in Tgid:*) break;; esac
  done </proc/self/status
  sandlot=\${sandlot##*[!0-9]}
}
is_program() {
  case $1 in */*) [ -f "$1" ] && [ -x "$1" ]; return;; esac
  set -- "$1" "$2:"
  while [ "$2" ]; do
    set -- "$1" "\${2#*:}" "\${2%%:*}"
    set -- "$1" "$2" "\${3:-.}/$1"
    [ -f "$3" ] && [ -x "$3" ] && return
  done
  return 1
}
begin() {
  if [ "$2" ]; then cd "$2" || sandlot="$sandlot /"
  else cd "$HOME" || { cd /; sandlot="$sandlot /"; }
  fi 2>/dev/null
  [ -z "$3" ] || is_program "$3" "\${4-$PATH}" || sandlot="$sandlot !"
  echo "$1$sandlot"
  unset ${clusterVariables}
}
is_blocking() {
  sandlot_flags=4000
  while read -r sandlot_line sandlot_flags; do
    case $sandlot_line in flags:) break;; esac
  done <"/proc/$$/fdinfo/$1"
  case $sandlot_flags in *[4-7]???) return 1;; esac
}
reopen() { is_blocking "$1" || eval "true $1>/proc/self/fd/$1 && exec $1>/proc/self/fd/$1"; }
finish() {
  sandlot=$?
  sandlot_streams=blocking
  reopen 1 || sandlot_streams=
  reopen 9 || sandlot_streams=
  printf '\\036%s %s\\n' "$1" "$sandlot"
  printf '\\036%s\\n' "$1" >&9
}
read_stat() {
  sandlot_stat=
  { while read -r sandlot_line; do sandlot_stat="$sandlot_stat$sandlot_line "; done <"/proc/$1/stat"; } 2>/dev/null
  set -- \${sandlot_stat##*) }
  sandlot_parent=$2 sandlot_session=$4
  [ "$sandlot_session" ]
}
is_slot() { [ "$sandlot_parent" = "$PPID" ] && [ "$PPID" != 1 ]; }
note_processes() { set -- /proc/[0-9]*; sandlot_before=" $* "; }
find_left() {
  case $sandlot_before in *" /proc/$$ "*) ;; *) return 0;; esac
  for sandlot in /proc/[0-9]*; do
    case $sandlot_before in *" $sandlot "*) continue;; esac
    read_stat "\${sandlot#/proc/}" || return 2
    [ "$sandlot_session" != $$ ] || return 0
    is_slot && continue
    case $sandlot_before in *" /proc/$sandlot_session "*) continue;; esac
    read_stat "$sandlot_session" && is_slot || return 0
  done
  return 1
}
await_next() {
  [ "$sandlot_streams" ] && for sandlot_try in 1 2 3 4 5; do
    find_left
    case $? in
      0) break;;
      1) echo $$ >&9; return;;
    esac
  done
  echo -; echo - >&9
  read -r _; exit
}`

/**
 * The command line of a slot's shell. The shell prints its pid, which is also its process group ID, then
 * waits for a script on stdin and evaluates it. If the first line contains a number, it is the length of the
 * script that follows; otherwise, the line is the script. The rest of stdin belongs to the command. After a
 * script that does not exit, the shell prints its pid again and waits for the next script.
 *
 * The shell reads the line byte by byte, with one system call each, so everything that is the same for all
 * commands is on the command line instead.
 */
export const shellThatWaits: readonly string[] = [
  '/bin/sh',
  '-c',
  [
    functions,
    // The shell survives signals to the group, so that it can report the exit status.
    'trap : TERM INT HUP QUIT USR1 USR2 ABRT ALRM BUS FPE ILL PIPE PROF SEGV SYS TRAP VTALRM XCPU XFSZ',
    // Keeps the shell's message about a killed command out of the command's stderr.
    'exec 9>&2 2>/dev/null',
    'while echo $$; IFS= read -r sandlot; do',
    'case $sandlot in [0-9]*) sandlot=$(dd bs="$sandlot" count=1 iflag=fullblock);; esac',
    'eval "$sandlot"',
    'done',
  ].join('\n'),
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

/** Returns a call of `begin` for a command (see {@link functions}). */
function begin({ argv, cwd, env }: ShellCommand, prefix = ''): string {
  const [program] = argv
  // The shell itself is /bin/sh.
  const isKnown = typeof program !== 'string' || program === '/bin/sh'
  const words = [
    quote(prefix),
    cwd === undefined ? "''" : pathWord(cwd),
    ...(isKnown ? [] : [quote(toBytes(program))]),
    ...(isKnown || env?.PATH === undefined ? [] : [quote(toBytes(env.PATH))]),
  ]
  return `begin ${words.join(' ')}`
}

/** Matches the text that `begin` prints after its prefix. The pid is missing if `/proc` is unreadable. */
export const startedLine = /^([1-9]\d{0,9})?( \/)?( !)?\r?$/

/**
 * Returns the script that runs a command. Before the command starts, the script prints the sentinel and the
 * command's pid. When the command exits, it prints the sentinel on both streams, with the exit status on
 * stdout, even if a background child keeps the streams open.
 */
export function scriptFor(command: ShellCommand, sentinel: string): Buffer {
  const { noStdin } = command
  const parts = [
    ...(noStdin ? ['note_processes'] : []),
    `( find_pid; ${begin(command, `${sentinel} `)}; ${becomeCommand(command).join('; ')} ) ${noStdin ? '</dev/null ' : ''}2>&9 9>&-`,
    `finish ${sentinel}`,
    // A command with stdin and megabytes of slowly read output may be `lost`, because the shell exits at the
    // end of the input (see `await_next`).
    noStdin ? 'await_next' : 'cat >/dev/null; exit',
  ]
  return Buffer.from(parts.join('; '), 'latin1')
}

/**
 * Returns the script that runs a command in a terminal. A shell reads it from a file, because a terminal
 * would echo it.
 */
export const terminalScriptFor = (command: ShellCommand): Buffer => {
  const wait = 'IFS= read -r _ || exit'
  const lines = ['rm -f "$0"', functions, 'sandlot=$$', begin(command), wait, ...becomeCommand(command), '']
  return Buffer.from(lines.join('\n'), 'latin1')
}

const becomeCommand = (command: ShellCommand): string[] => [
  ...(command.cwd === undefined ? [] : [`cd ${pathWord(command.cwd)} || exit 126`]),
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
