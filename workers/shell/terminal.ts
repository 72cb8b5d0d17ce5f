/**
 * A command with a terminal. What is written to a terminal is echoed, and an argv may be seen in a cluster. So an
 * ordinary slot first puts the command into a file, and a shell on the terminal runs that.
 */
import { randomBytes } from 'node:crypto'
import { within } from '../../shared/platform/patience.ts'
import {
  type Driver,
  DriverUnavailable,
  PodExhausted,
  type PodName,
  type Process,
  type TerminalSize,
} from '../drivers/driver.ts'
import { type Resource, usedUpBy } from '../drivers/exhausted.ts'
import { type ShellCommand, terminalScriptFor } from './script.ts'
import { findUsedUp, LineReader, openSlot, type Slot, startQuietly, whySilent } from './slot.ts'

const noRoom = 'the sandbox has no room for the command'
/** Characters of what the shell says about a failure. */
const mostOfWords = 1_000

/**
 * Resolves when the command has its terminal, before anything is typed.
 * @returns its pid leads the terminal's session and the command's process group. Its stdin has no end: byte 4 means that
 * @param ways.takeSlot takes the slot that carries the command; by default one is opened
 * @param ways.beforeStart may throw at the last moment, so that the command does not start
 * @throws {PodGone} the pod does not run
 * @throws {PodExhausted} it has no room for the command, or for its text: nothing has run
 * @throws {DriverUnavailable} it could not be reached, or has no terminals: nothing has run
 */
export async function openTerminal(
  driver: Driver,
  pod: PodName,
  command: ShellCommand,
  size: TerminalSize,
  ways: { takeSlot?: () => Promise<Slot>; beforeStart?: () => Promise<void> } = {},
) {
  const { takeSlot = () => openSlot(driver, pod), beforeStart = async () => {} } = ways
  const file = `/tmp/.sandlot-${randomBytes(16).toString('hex')}`
  const failure = await writeScript(await takeSlot(), file, terminalScriptFor(command))
  if (failure) {
    const usedUp = failure.usedUp ?? (await findUsedUp(driver, pod))
    if (usedUp) throw new PodExhausted(usedUp, noRoom)
    throw new DriverUnavailable('the sandbox did not take the command for its terminal')
  }
  let process: Process | undefined
  try {
    await beforeStart()
    process = await startQuietly(driver, pod, ['/bin/sh', file], { tty: size })
    return await connect(driver, pod, process)
  } catch (error) {
    process?.close()
    void remove(driver, pod, file)
    throw error
  }
}

async function connect(driver: Driver, pod: PodName, process: Process) {
  const { stdin, stdout, ended, close, resize } = process
  const lines = new LineReader(stdout)
  const first = await within(driver.silence.shell, lines.next())
  // The pid comes from inside the sandbox, so it is checked.
  const pid = /^([1-9]\d{0,9})\r?$/.exec(first ?? '')?.[1]
  if (pid === undefined) throw await whySilent(driver, pod, { ended }, first)
  const rest = lines.rest()
  if (rest.length > 0) stdout.unshift(rest)
  return {
    pid: Number(pid),
    stdin,
    stdout,
    ended,
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
      words = (words + chunk.toString('latin1')).slice(0, mostOfWords)
    },
  }
  const end = await slot.run({ argv, cwd: '/', env: { LC_ALL: 'C' } }, io)
  if (end.kind === 'exited' && end.code === 0) return undefined
  return { usedUp: end.kind === 'lost' ? end.usedUp : usedUpBy(words) }
}

/** Removes the file, which holds the command's environment. */
async function remove(driver: Driver, pod: PodName, file: string): Promise<void> {
  try {
    const process = await startQuietly(driver, pod, ['rm', '-f', file])
    process.stdout.resume()
    process.stderr.resume()
    await within(driver.silence.shell, process.ended)
    process.close()
  } catch {
    // Otherwise it goes with the sandbox.
  }
}
