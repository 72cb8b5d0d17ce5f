import { untilAborted, withTimeout } from '../../shared/lib/timeout.ts'
import type { Driver } from '../drivers/driver.ts'
import { killSessions, signalGroup } from './kill.ts'
import type { ShellCommand } from './script.ts'
import type { CommandExit, CommandIo, CommandProcesses, Slot } from './slot.ts'

const graceMs = 2_000
const drainMs = 2_000

export type SlotRunResult = CommandExit | { kind: 'timed_out' } | { kind: 'cancelled' }

interface RunOptions {
  timeoutMs: number
  signal: AbortSignal
}

export async function runCommand(
  driver: Driver,
  slot: Slot,
  command: ShellCommand,
  io: CommandIo,
  { timeoutMs, signal }: RunOptions,
): Promise<SlotRunResult> {
  if (signal.aborted) {
    slot.close()
    return { kind: 'cancelled' }
  }
  const ended = slot.run(command, io)
  try {
    const endedOrCancelled = untilAborted(signal, ended).catch((error) => {
      if (!signal.aborted) throw error
      return 'cancelled' as const
    })
    const first = await withTimeout(timeoutMs, endedOrCancelled, () => 'timed_out' as const)
    if (first !== 'timed_out' && first !== 'cancelled') return first
    await killGroup(driver, slot.processes, ended)
    return { kind: first }
  } finally {
    slot.close()
  }
}

/** Sends TERM, then KILL. If the shell still reports no exit status, kills the shell as well. */
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
