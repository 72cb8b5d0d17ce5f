/**
 * Runs commands in terminals. A terminal echoes its input, and the cluster may log an argv, so an ordinary
 * slot writes the command to a file, and a shell in the terminal runs that file.
 * The shell waits until its pid has been recorded, so that every running command can be found. Until then,
 * its argv contains the file's path, by which {@link killWaitingShells} finds a shell whose worker has died.
 */
import { withTimeout } from '../../shared/lib/timeout.ts'
import {
  type Driver,
  DriverUnavailable,
  PodExhausted,
  type PodName,
  type Process,
  type TerminalSize,
} from '../drivers/driver.ts'
import { type Resource, usedUpBy } from '../drivers/exhausted.ts'
import { runToCompletion } from './kill.ts'
import { LineReader } from './line-reader.ts'
import { type ShellCommand, startedLine, terminalScriptFor } from './script.ts'
import {
  type CommandExit,
  describeStart,
  diagnoseShell,
  findUsedUp,
  type Slot,
  startQuietly,
} from './slot.ts'

const noRoom = 'the sandbox lacks a resource for the command'
const maxErrorLength = 1_000

interface TerminalOptions {
  id: string
  takeSlot: () => Promise<Slot>
  /** Called with the pid of the terminal's shell. If this callback rejects, the command does not start. */
  beforeStart: (pid: number) => Promise<void>
}

const fileOf = (id: string) => `/tmp/.sandlot-${id}`

/**
 * Runs a command in a new terminal. If this function rejects, the command has not run. A terminal's stdin has
 * no EOF; send byte 4 (Ctrl-D) instead.
 * @throws {PodGone} if the pod is not running
 * @throws {PodExhausted} if the pod has exhausted a resource needed to run the command or to write its file
 * @throws {DriverUnavailable} if the pod is unreachable or does not support terminals
 */
export async function openTerminal(
  driver: Driver,
  pod: PodName,
  command: ShellCommand,
  size: TerminalSize,
  { id, takeSlot, beforeStart }: TerminalOptions,
) {
  const file = fileOf(id)
  const failure = await writeScript(await takeSlot(), file, terminalScriptFor(command))
  if (failure) {
    const usedUp = failure.usedUp ?? (await findUsedUp(driver, pod))
    if (usedUp) throw new PodExhausted(usedUp, noRoom)
    throw new DriverUnavailable('the sandbox could not store the command for its terminal')
  }
  let process: Process | undefined
  try {
    process = await startQuietly(driver, pod, ['/bin/sh', file], { tty: size })
    return await connect(driver, pod, process, command.cwd !== undefined, beforeStart)
  } catch (error) {
    process?.close()
    void killWaitingShells(driver, pod, id)
    throw error
  }
}

async function connect(
  driver: Driver,
  pod: PodName,
  process: Process,
  hasCwd: boolean,
  beforeStart: (pid: number) => Promise<void>,
) {
  const { stdin, stdout, ended, close, resize } = process
  const lines = new LineReader(stdout)
  const first = await withTimeout(driver.livenessTimeouts.shell, lines.next())
  // The pid is validated because it comes from the sandbox.
  const started = startedLine.exec(first ?? '')
  const pid = started?.[1]
  if (!started || pid === undefined) throw await diagnoseShell(driver, pod, { ended }, first)
  await beforeStart(Number(pid))
  stdin.write('\n')
  // The echo of this line precedes the command's output. Without an echo, the connection is dead, and it is
  // unknown whether the command runs.
  const isEchoed = await withTimeout(
    driver.livenessTimeouts.shell,
    lines.next().then(() => true),
  )
  if (!isEchoed) close()
  const rest = lines.takeRest()
  if (rest.length > 0) stdout.unshift(rest)
  return {
    pid: Number(pid),
    stdin,
    stdout,
    ended: ended.then(
      (end): CommandExit =>
        end.kind === 'exited' ? { ...end, ...describeStart(started, hasCwd, end.code) } : end,
    ),
    close,
    resize: async (to: TerminalSize) => await resize?.(to),
  }
}

/**
 * Writes a terminal's script to a file, unless the file already exists.
 * @returns undefined on success. On failure, an object that contains the exhausted resource, if known
 */
async function writeScript(
  slot: Slot,
  file: string,
  script: Buffer,
): Promise<{ usedUp: Resource | undefined } | undefined> {
  const argv = ['/bin/sh', '-c', 'umask 077; set -C; cat >"$0"', file]
  let stderr = ''
  const io = {
    stdin: script,
    onStdout() {},
    onStderr(chunk: Buffer) {
      stderr = (stderr + chunk.toString('latin1')).slice(0, maxErrorLength)
    },
  }
  const end = await slot.run({ argv, cwd: '/', env: { LC_ALL: 'C' } }, io)
  if (end.kind === 'exited' && end.code === 0) return undefined
  return { usedUp: end.kind === 'lost' ? end.usedUp : usedUpBy(stderr) }
}

/**
 * Kills the processes whose argv contains a path, except for the script itself. The loop starts no process,
 * because the sandbox may have reached its process limit. `read` drops NUL bytes, and returns nothing for a
 * process that has just ended.
 */
const endWaitingScript = `for p in /proc/[0-9]*; do
words=; { IFS= read -r words <"$p/cmdline"; } 2>/dev/null
case "$p $words" in "/proc/$$ "*) ;; *"$1"*) kill -KILL "\${p#/proc/}" 2>/dev/null;; esac
done; echo; rm -f "$1"; read -r _`

/**
 * Kills the shell that waits in a terminal, but not a command that has started. Also deletes the script file,
 * which contains the command's environment.
 * @returns false if the pod is unreachable
 */
export const killWaitingShells = (driver: Driver, pod: PodName, id: string): Promise<boolean> =>
  runToCompletion(driver, pod, [endWaitingScript, 'sh', fileOf(id)])
