/**
 * Stops all processes of the stack, even if this process is killed with SIGKILL. The watchdog is a shell that reads the
 * IDs of the started process groups from a pipe, and stops these groups when the pipe closes. The shell runs in a
 * separate session, so Ctrl-C and signals to this process's group do not reach it.
 */
import { spawn } from 'node:child_process'
import { quote } from '../../shared/contract/shell-words.ts'

/** The watchdog kills applications first. It then shuts down databases, which have 2 s to write their data. */
export type Kind = 'application' | 'database'

export interface Watchdog {
  pid: number
  /** Registers a process group to stop when this process exits. `pid` is the PID of the group's leader. */
  guard(kind: Kind, pid: number): void
  forget(pid: number): void
  /** Registers a folder to remove when this process exits, even after a regular stop. */
  remove(folder: string): void
  /** Registers a command that runs when this process exits, between killing applications and stopping databases. */
  afterwards(command: string[]): void
  /** Declares that everything has stopped. The watchdog then only removes the registered folders. */
  dismiss(): void
}

const script = `
trap '' INT TERM HUP QUIT
application= database= folders= last=
without() { kept=; for one in $1; do [ "$one" = "$2" ] || kept="$kept $one"; done; echo "$kept"; }
signal() { for one in $2; do kill -"$1" "-$one" 2>/dev/null; done; }
while IFS= read -r line; do
  value="\${line#* }"
  case "$line" in
    application*) application="$application $value" ;;
    database*) database="$database $value" ;;
    forget*) application=$(without "$application" "$value"); database=$(without "$database" "$value") ;;
    remove*) folders="$folders$value
" ;;
    afterwards*) last="$value" ;;
    dismiss*) application= database= last= ;;
  esac
done
signal KILL "$application"
[ -z "$last" ] || sh -c "$last" >/dev/null 2>&1
signal INT "$database"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  left=; for one in $database; do kill -0 "-$one" 2>/dev/null && left=yes; done
  [ -n "$left" ] || break
  sleep 0.1
done
signal KILL "$database"
printf %s "$folders" | while IFS= read -r one; do rm -rf "$one"; done
`

export function startWatchdog(): Watchdog {
  // Discards the shell's output: an inherited pipe would stay open, and its reader would wait for the shell.
  const shell = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  shell.unref()
  shell.stdin.on('error', () => {})
  const send = (line: string) => shell.stdin.write(`${line}\n`)
  if (shell.pid === undefined) throw new Error('Cannot start /bin/sh.')
  return {
    pid: shell.pid,
    guard: (kind, pid) => send(`${kind} ${pid}`),
    forget: (pid) => send(`forget ${pid}`),
    remove: (folder) => send(`remove ${folder}`),
    afterwards: (command) => send(`afterwards ${command.map(quote).join(' ')}`),
    dismiss: () => shell.stdin.end('dismiss \n'),
  }
}
