/** Checks that processes serve requests again after the faults, and have not grown. */
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryOf } from '../../support/memory.ts'
import { descriptorsOf } from '../../support/raw.ts'
import type { Recorder } from '../recorder.ts'
import { apiCount, type Instance, type Stage } from '../stage.ts'

const recoverMs = 30_000

export async function checkRecovery({ world }: Stage, recorder: Recorder): Promise<void> {
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
      recorder.wrong('an API does not serve requests after the faults', { api, last, afterMs: recoverMs })
    })
  }
}

/** Node's warnings about invalid timer delays and too many listeners. */
const warnings = /^\(node:\d+\) (Timeout\w*|MaxListenersExceeded)Warning: /

export function checkWarnings({ processes }: Pick<Stage, 'processes'>, recorder: Recorder): void {
  for (const { name, lines } of processes) {
    for (const { msg, seenAt } of lines) {
      if (warnings.test(msg))
        recorder.wrong('a process logged a warning of Node', { process: name, msg, seenAt })
    }
  }
}

/** Allowance for connections to databases and processes, and for slots. */
const moreDescriptors = 60
/** Allowance for garbage that V8 has not yet collected on a busy machine. */
const moreMemory = 256 * 1024 * 1024
const quietMs = 45_000

/** Waits up to 45 s for sizes to return to normal. Idle connections and slots are closed gradually. */
export async function checkSizes({ instances }: Stage, recorder: Recorder): Promise<Size[]> {
  const end = performance.now() + quietMs
  while (!instances.every(isSmall) && performance.now() < end) await sleep(500)
  const sizes = instances.map(sizeOf)
  for (const [index, instance] of instances.entries()) {
    if (!isSmall(instance)) recorder.wrong('a process has grown', sizes[index])
  }
  return sizes
}

export interface Size {
  name: string
  memoryMiB: [before: number, after: number]
  descriptors: [before: number, after: number]
}

const mebibytes = (bytes: number) => Math.round(bytes / 1024 / 1024)

const sizeOf = ({ name, process, usual }: Instance): Size => ({
  name,
  memoryMiB: [mebibytes(usual.memory), mebibytes(memoryOf(process))],
  descriptors: [usual.descriptors, descriptorsOf(process)],
})

const isSmall = ({ process, usual }: Instance): boolean =>
  memoryOf(process) < usual.memory + moreMemory &&
  descriptorsOf(process) < usual.descriptors + moreDescriptors
