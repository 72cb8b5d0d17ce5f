/** Runs a command to its end, its time-out or its cancellation, whichever comes first. */
import { untilAborted, within } from '../../shared/platform/patience.ts'
import { type Driver, PodGone, type PodName } from '../drivers/driver.ts'
import type { ShellCommand } from './script.ts'
import { type CommandEnd, type CommandIo, LineReader, type Slot, startQuietly } from './slot.ts'

/** Milliseconds between TERM and KILL. */
const graceMs = 2_000
/** Milliseconds that the last output of a killed command is waited for. */
const drainMs = 2_000

export type RunEnd = CommandEnd | { kind: 'timed_out' } | { kind: 'cancelled' }

export interface RunOptions {
  timeoutMs: number
  /** Aborting it ends the command's process group: nobody waits for the command any more. */
  signal: AbortSignal
}

/** @param slot opened for this command */
export async function runCommand(
  driver: Driver,
  slot: Slot,
  command: ShellCommand,
  io: CommandIo,
  { timeoutMs, signal }: RunOptions,
): Promise<RunEnd> {
  if (signal.aborted) {
    slot.close()
    return { kind: 'cancelled' }
  }
  const ended = slot.run(command, io)
  try {
    const whileAwaited = untilAborted(signal, ended).catch((error) => {
      if (!signal.aborted) throw error
      return 'cancelled' as const
    })
    const first = await within(timeoutMs, whileAwaited, () => 'timed_out' as const)
    if (first !== 'timed_out' && first !== 'cancelled') return first
    await endGroup(driver, slot.pod, slot.pid, ended)
    return { kind: first }
  } finally {
    slot.close()
  }
}

/** Ends the command's process group and waits a little for its last output. */
export async function endGroup(driver: Driver, pod: PodName, pid: number, ended: Promise<unknown>) {
  await signalGroup(driver, pod, pid, 'TERM')
  if (await settles(ended, graceMs)) return
  await signalGroup(driver, pod, pid, 'KILL')
  await settles(ended, drainMs)
}

/**
 * Signals a process group. The shell that does so says when it is done, and waits to be let go: many processes that end
 * as soon as they have started make containerd's shim stand still for seconds (containerd#8557).
 * @returns true when that is done, or nothing is left to signal; false when the pod cannot be reached
 */
export async function signalGroup(
  driver: Driver,
  pod: PodName,
  pid: number,
  signal: string,
): Promise<boolean> {
  // Without `--`: busybox and dash refuse it here.
  return await tidy(driver, pod, [`kill -${signal} -${pid} 2>/dev/null; echo; read -r _`])
}

/**
 * Runs a script of ours that prints a line when it is done, and then waits to be let go.
 * @param words the script, and its arguments from $0 on
 * @returns true when it is done, or the pod is gone; false when the pod cannot be reached
 */
export async function tidy(driver: Driver, pod: PodName, words: readonly string[]): Promise<boolean> {
  try {
    const process = await startQuietly(driver, pod, ['/bin/sh', '-c', ...words])
    const word = await within(driver.silence.shell, new LineReader(process.stdout).next())
    process.close()
    return word !== undefined
  } catch (error) {
    return error instanceof PodGone
  }
}

async function settles(work: Promise<unknown>, ms: number): Promise<boolean> {
  return (await within(ms, Promise.allSettled([work]))) !== undefined
}
