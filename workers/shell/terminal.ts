/**
 * A command with a terminal. What is written to a terminal is echoed, and an argv may be seen in a
 * cluster: so the command goes into a file first, by an ordinary slot, and a shell on the terminal
 * runs that.
 */
import { randomBytes } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { within } from '../../shared/platform/patience.ts'
import {
  type Driver,
  DriverUnavailable,
  type PodName,
  type Process,
  type TerminalSize,
} from '../drivers/driver.ts'
import { type ShellCommand, terminalScriptFor } from './script.ts'
import { answerMs, type CommandEnd, LineReader, openSlot, type Slot } from './slot.ts'

export interface Terminal {
  /** Leads the terminal's session, and the process group of all that the command does not move elsewhere. */
  pid: number
  /** What is typed. It has no end: a terminal's sign for that is byte 4. */
  stdin: Writable
  stdout: Readable
  resize(size: TerminalSize): Promise<void>
  ended: Promise<CommandEnd>
  /** Drops the connection; what still runs is not ended by that. */
  close(): void
}

/**
 * Resolves when the command has its terminal; nothing was typed until then.
 * @param ways.takeSlot where the slot comes from that carries the command; one is opened unless told
 * @param ways.beforeStart calls the command off in the last moment, by throwing
 * @throws {PodGone} the pod does not run
 * @throws {DriverUnavailable} it could not be reached, or has no terminals: nothing has run
 */
export async function openTerminal(
  driver: Driver,
  pod: PodName,
  command: ShellCommand,
  size: TerminalSize,
  ways: { takeSlot?: () => Promise<Slot>; beforeStart?: () => Promise<void> } = {},
): Promise<Terminal> {
  const { takeSlot = () => openSlot(driver, pod), beforeStart = async () => {} } = ways
  const file = `/tmp/.sandlot-${randomBytes(16).toString('hex')}`
  await writeScript(await takeSlot(), file, terminalScriptFor(command))
  let process: Process | undefined
  try {
    await beforeStart()
    process = await driver.start(pod, ['/bin/sh', file], { tty: size })
    for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
    return await connect(process)
  } catch (error) {
    process?.close()
    void remove(driver, pod, file)
    throw error
  }
}

async function connect({ stdin, stdout, ended, close, resize }: Process): Promise<Terminal> {
  const lines = new LineReader(stdout)
  const first = await within(answerMs, lines.next())
  // The pid comes from inside the sandbox: believed only if it looks like one.
  const pid = /^([1-9]\d{0,9})\r?$/.exec(first ?? '')?.[1]
  if (pid === undefined) throw new DriverUnavailable('the shell on the terminal did not answer')
  const rest = lines.rest()
  if (rest.length > 0) stdout.unshift(rest)
  return { pid: Number(pid), stdin, stdout, ended, close, resize: async (size) => await resize?.(size) }
}

/** Only its owner can read the file, and one that is there already is left alone. */
async function writeScript(slot: Slot, file: string, script: Buffer): Promise<void> {
  const argv = ['/bin/sh', '-c', 'umask 077; set -C; cat >"$0"', file]
  const ignore = () => {}
  const end = await slot.run({ argv, cwd: '/' }, { stdin: script, onStdout: ignore, onStderr: ignore })
  if (end.kind === 'exited' && end.code === 0) return
  throw new DriverUnavailable('the sandbox did not take the command for its terminal')
}

/** It holds the command's environment, which need not lie about. */
async function remove(driver: Driver, pod: PodName, file: string): Promise<void> {
  try {
    const process = await driver.start(pod, ['rm', '-f', file])
    for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
    process.stdout.resume()
    process.stderr.resume()
    await within(answerMs, process.ended)
    process.close()
  } catch {
    // It goes with the sandbox.
  }
}
