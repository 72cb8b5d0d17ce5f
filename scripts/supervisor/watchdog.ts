/**
 * Stops the whole stack even if this process is killed: a shell reads process groups from a pipe, and stops them
 * when the pipe closes. The shell has its own session, so Ctrl-C does not reach it.
 */
import { spawn } from 'node:child_process'
import { quote } from '../../shared/contract/shell-words.ts'

export interface Watchdog {
  pid: number
  /**
   * Stops the process group of `pid` when this process exits. Applications are killed first, and databases then have
   * 2 s to write their data.
   */
  guard(kind: 'application' | 'database', pid: number): void
  forget(pid: number): void
  /** Removes a folder when this process exits, even if the watchdog has been dismissed. */
  remove(folder: string): void
  /**
   * Runs a command when this process exits, after applications have been killed and before databases are
   * stopped.
   */
  afterwards(command: string[]): void
  /** Prevents the watchdog from stopping any processes. Folders are still removed. */
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
  // An inherited pipe would stay open, and its reader would wait for the shell.
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
