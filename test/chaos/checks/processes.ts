/** Processes after the storm: all of it works again, and they are no larger than before. */
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryOf } from '../../support/memory.ts'
import { descriptorsOf } from '../../support/raw.ts'
import type { Ledger } from '../ledger.ts'
import { apiCount, type Seat, type Stage } from '../stage.ts'

const recoverMs = 30_000

/** Within so long a stranger is served by each API as if nothing had been. */
export async function checkRecovery({ world }: Stage, ledger: Ledger): Promise<void> {
  for (let api = 0; api < apiCount; api++) {
    let last: unknown
    const serve = async () => {
      try {
        const account = await world.account({ api })
        const { body } = await account.call('createSandbox', { api })
        const params = { id: body.id }
        const result = await account.call('execCommand', { params, body: { command: ['echo', 'well'] }, api })
        await account.call('destroySandbox', { params, api })
        last = result.body
        return result.body.stdout === 'well\n'
      } catch (error) {
        last = String(error)
        return false
      }
    }
    await world.eventually(serve, recoverMs).catch(() => {
      ledger.wrong('it does not work again after the faults', { api, last, afterMs: recoverMs })
    })
  }
}

/** Of Node, on stderr: a timer that waits for less or more than it can, or an emitter that gathers listeners. */
const warnings = /^\(node:\d+\) (Timeout\w*|MaxListenersExceeded)Warning: /

/** A timer of which Node warns fires at another time than it was meant to. */
export function checkWarnings({ processes }: Pick<Stage, 'processes'>, ledger: Ledger): void {
  for (const { name, lines } of processes) {
    for (const { msg, seenAt } of lines) {
      if (warnings.test(msg)) ledger.wrong('a process was warned by Node', { process: name, msg, seenAt })
    }
  }
}

/** Connections to the databases, to each other, kept ones and slots: what a process may hold besides what it began with. */
const moreDescriptors = 60
/** What V8 keeps of work that is over, on a busy machine. */
const moreMemory = 256 * 1024 * 1024
const quietMs = 45_000

/** Asks again for a while: kept connections and slots are closed by and by. */
export async function checkSizes({ seats }: Stage, ledger: Ledger): Promise<Size[]> {
  const end = performance.now() + quietMs
  while (!seats.every(isSmall) && performance.now() < end) await sleep(500)
  const sizes = seats.map(sizeOf)
  for (const [index, seat] of seats.entries()) {
    if (!isSmall(seat)) ledger.wrong('a process holds more than before', sizes[index])
  }
  return sizes
}

export interface Size {
  name: string
  memoryMiB: [before: number, after: number]
  descriptors: [before: number, after: number]
}

const mebibytes = (bytes: number) => Math.round(bytes / 1024 / 1024)

const sizeOf = ({ name, process, usual }: Seat): Size => ({
  name,
  memoryMiB: [mebibytes(usual.memory), mebibytes(memoryOf(process))],
  descriptors: [usual.descriptors, descriptorsOf(process)],
})

const isSmall = ({ process, usual }: Seat): boolean =>
  memoryOf(process) < usual.memory + moreMemory &&
  descriptorsOf(process) < usual.descriptors + moreDescriptors
