import { withTimeout } from '../../shared/lib/timeout.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import { LineReader } from './line-reader.ts'
import { type CommandProcesses, startQuietly } from './slot.ts'

/**
 * Returns a shell loop that runs `body` for each process in the pod. In `body`, `pid` is the process ID, and
 * $1 to $4 are the state, parent, process group and session.
 * In `/proc/PID/stat`, these fields follow the process name in parentheses, which may contain any character,
 * so everything up to the last closing parenthesis is removed.
 */
const forEachProcess = (body: string) => `for p in /proc/[0-9]*; do
pid=\${p#/proc/} w=; { while read -r l; do w="$w $l"; done <"$p/stat"; } 2>/dev/null
set -- \${w##*) }; [ $# -ge 4 ] || continue
${body}
done`

const waitToBeClosed = 'read -r _'

/**
 * Kills a command's process group except for the slot's shell, which then reports the exit status. The group
 * is stopped first, so that no process in it can fork a child that the loop misses.
 */
const killBesidesShell = `leader=$1; kill -STOP -$leader 2>/dev/null
${forEachProcess('case " $2 $3 " in *" $leader "*) [ $pid = $leader ] || kill -KILL $pid 2>/dev/null;; esac')}
kill -CONT $leader 2>/dev/null; echo; ${waitToBeClosed}`

/**
 * Kills all processes in a command's POSIX sessions. Prints `left` if any process survives, otherwise an
 * empty line.
 */
const killSessionsScript = `leader=$1 command=\${2:-$1}
kill -KILL -$leader 2>/dev/null; kill -KILL -$command 2>/dev/null; kill -KILL $command 2>/dev/null
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do left=
${forEachProcess(`case $1 in [ZX]) continue;; esac
case " $pid $3 $4 " in *" $leader "*|*" $command "*) left=left; kill -KILL $pid 2>/dev/null;; esac`)}
[ "$left" ] || break; done; echo "$left"; ${waitToBeClosed}`

/**
 * Sends a signal to a command's process group. The shell that sends it stays alive until its connection is
 * closed, because containerd's shim hangs for seconds if many shells exit immediately (containerd#8557).
 * @returns false if the pod is unreachable
 */
export async function signalGroup(
  driver: Driver,
  { pod, leader, isSlot = false }: CommandProcesses,
  signal: string,
): Promise<boolean> {
  if (signal === 'KILL' && isSlot)
    return await runToCompletion(driver, pod, [killBesidesShell, 'sh', String(leader)])
  // Without `--`, which busybox and dash reject here.
  return await runToCompletion(driver, pod, [
    `kill -${signal} -${leader} 2>/dev/null; echo; ${waitToBeClosed}`,
  ])
}

/**
 * Kills all processes in the POSIX sessions of a command and its slot, including the slot's shell.
 * @returns `gone` if the pod is not running; `unreachable` if it cannot be reached or a process survives
 */
export async function killSessions(
  driver: Driver,
  { pod, leader, command }: CommandProcesses,
): Promise<'ended' | 'gone' | 'unreachable'> {
  const pids = [leader, ...(command === undefined ? [] : [command])].map(String)
  try {
    return (await runToLine(driver, pod, [killSessionsScript, 'sh', ...pids])) === ''
      ? 'ended'
      : 'unreachable'
  } catch (error) {
    return error instanceof PodGone ? 'gone' : 'unreachable'
  }
}

/**
 * Runs a shell script in a pod. The script must print a line when it is done, then wait for its connection to
 * close.
 * @param args the script, followed by its arguments, starting with $0
 * @returns false if the pod is unreachable
 */
export async function runToCompletion(
  driver: Driver,
  pod: PodName,
  args: readonly string[],
): Promise<boolean> {
  try {
    return (await runToLine(driver, pod, args)) !== undefined
  } catch (error) {
    return error instanceof PodGone
  }
}

async function runToLine(driver: Driver, pod: PodName, args: readonly string[]): Promise<string | undefined> {
  const process = await startQuietly(driver, pod, ['/bin/sh', '-c', ...args])
  const line = await withTimeout(driver.livenessTimeouts.shell, new LineReader(process.stdout).next())
  process.close()
  return line
}

const graceMs = 2_000
const drainMs = 2_000

/**
 * Ends a command with TERM, then KILL. If the shell still reports no exit status, kills the shell as well.
 */
export async function killGroup(driver: Driver, processes: CommandProcesses, ended: Promise<unknown>) {
  await signalGroup(driver, processes, 'TERM')
  if (await settles(ended, graceMs)) return
  await signalGroup(driver, processes, 'KILL')
  if (await settles(ended, drainMs)) return
  await killSessions(driver, processes)
}

async function settles(work: Promise<unknown>, ms: number): Promise<boolean> {
  return (await withTimeout(ms, Promise.allSettled([work]))) !== undefined
}
