/**
 * A command with a terminal. What is written to a terminal is echoed, and an argv may be seen in a cluster. So an
 * ordinary slot first puts the command into a file, and a shell on the terminal runs that.
 *
 * The shell waits until its pid is written down, so no command runs that nobody could find again. Until then its argv
 * names the file, and the file the command: that is how {@link killWaitingShells} finds a shell whose worker died.
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
import { tidy } from './kill.ts'
import { inRoot, type ShellCommand, terminalScriptFor } from './script.ts'
import { type CommandExit, findUsedUp, LineReader, type Slot, startQuietly, whySilent } from './slot.ts'

const noRoom = 'the sandbox has no room for the command'
const maxOfWords = 1_000

export interface TerminalWays {
  /** Of the command; unguessable, and never used before in this pod. */
  id: string
  takeSlot: () => Promise<Slot>
  /** Gets the pid at the last moment. May throw: then the command does not start. */
  beforeStart: (pid: number) => Promise<void>
}

const fileOf = (id: string) => `/tmp/.sandlot-${id}`

/**
 * Resolves when the command has its terminal, before anything is typed.
 * @returns its pid leads the terminal's session and the command's process group. Its stdin has no end: byte 4 means that
 * @throws {PodGone} the pod does not run
 * @throws {PodExhausted} it has no room for the command, or for its text: nothing has run
 * @throws {DriverUnavailable} it could not be reached, or has no terminals: nothing has run
 */
export async function openTerminal(
  driver: Driver,
  pod: PodName,
  command: ShellCommand,
  size: TerminalSize,
  { id, takeSlot, beforeStart }: TerminalWays,
) {
  const file = fileOf(id)
  const failure = await writeScript(await takeSlot(), file, terminalScriptFor(command))
  if (failure) {
    const usedUp = failure.usedUp ?? (await findUsedUp(driver, pod))
    if (usedUp) throw new PodExhausted(usedUp, noRoom)
    throw new DriverUnavailable('the sandbox did not take the command for its terminal')
  }
  let process: Process | undefined
  try {
    process = await startQuietly(driver, pod, ['/bin/sh', file], { tty: size })
    return await connect(driver, pod, process, beforeStart)
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
  beforeStart: (pid: number) => Promise<void>,
) {
  const { stdin, stdout, ended, close, resize } = process
  const lines = new LineReader(stdout)
  const first = await withTimeout(driver.livenessTimeouts.shell, lines.next())
  // The pid comes from inside the sandbox, so it is checked.
  const [, pid, place] = /^([1-9]\d{0,9})( \/)?\r?$/.exec(first ?? '') ?? []
  if (pid === undefined) throw await whySilent(driver, pod, { ended }, first)
  await beforeStart(Number(pid))
  stdin.write('\n')
  // The terminal echoes the line before the shell has read it, so this comes before the command's output. Without it the
  // connection is dead, and nobody knows whether the command runs.
  const isEchoed = await withTimeout(
    driver.livenessTimeouts.shell,
    lines.next().then(() => true),
  )
  if (!isEchoed) close()
  const rest = lines.rest()
  if (rest.length > 0) stdout.unshift(rest)
  return {
    pid: Number(pid),
    stdin,
    stdout,
    ended: ended.then(
      (end): CommandExit => (end.kind === 'exited' && place === inRoot ? { ...end, inRoot: true } : end),
    ),
    close,
    resize: async (to: TerminalSize) => await resize?.(to),
  }
}

/**
 * Writes a file that only its owner can read, and never over an existing one.
 * @returns why it is not written, as far as the sandbox says that; undefined when it is
 */
async function writeScript(
  slot: Slot,
  file: string,
  script: Buffer,
): Promise<{ usedUp: Resource | undefined } | undefined> {
  const argv = ['/bin/sh', '-c', 'umask 077; set -C; cat >"$0"', file]
  let words = ''
  const io = {
    stdin: script,
    onStdout() {},
    onStderr(chunk: Buffer) {
      words = (words + chunk.toString('latin1')).slice(0, maxOfWords)
    },
  }
  const end = await slot.run({ argv, cwd: '/', env: { LC_ALL: 'C' } }, io)
  if (end.kind === 'exited' && end.code === 0) return undefined
  return { usedUp: end.kind === 'lost' ? end.usedUp : usedUpBy(words) }
}

/**
 * Finds processes by their argv, without starting one: the sandbox may have no room. NUL bytes are dropped by `read`.
 * Who reads a process that has just ended gets nothing. Its own argv has the file too.
 */
const endWaitingScript = `for p in /proc/[0-9]*; do
words=; { IFS= read -r words <"$p/cmdline"; } 2>/dev/null
case "$p $words" in "/proc/$$ "*) ;; *"$1"*) kill -KILL "\${p#/proc/}" 2>/dev/null;; esac
done; echo; rm -f "$1"; read -r _`

/**
 * Ends the shell that waits on a terminal, and removes its file, which holds the command's environment. Does nothing to
 * a command that has started.
 * @returns false when the pod cannot be reached
 */
export const killWaitingShells = (driver: Driver, pod: PodName, id: string): Promise<boolean> =>
  tidy(driver, pod, [endWaitingScript, 'sh', fileOf(id)])
