/** Measures the memory of an API and a worker: idle, with 100 sandboxes, and with streams. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../shared/contract/limits.ts'
import { residentMebibytes } from './gauges.ts'
import { extractImage } from './image.ts'
import { openStream } from './load.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, type Row } from './part.ts'
import { addressOf, type Stack, type StartedProcess, startStack } from './stack.ts'

const sandboxes = 100
/** As many as one account may open on a worker. */
const streams = limits.streams
/** The service's limit for a command. */
const readersOfCommand = 8
const batch = 5
/** V8 returns unused memory to the system several seconds after a change. */
const restMs = 15_000
/** Idle processes keep allocating, and V8 may not collect garbage for minutes. */
const idleMs = 300_000

export const memory: Part = {
  title: 'Memory of a process of the image',
  needsCluster: true,
  async measure() {
    // All pods must fit on the test node.
    const small = { SANDBOX_CPU_REQUEST: '5m', SANDBOX_MEMORY_REQUEST: '8Mi' }
    using image = await extractImage()
    await using namespace = await makeNamespace(kubeconfig())
    await using stack = await startStack({ ...namespace.env, ...small }, image)
    const koa = await stack.start('bench/bare-koa.ts', ['listening'])
    const bullmq = await stack.start('bench/bare-bullmq.ts', ['working'])
    const rows: Row[] = []
    const weigh = async (what: string, process: StartedProcess, ours = true) => {
      rows.push({ what, ours, unit: 'MiB', values: [residentMebibytes(process)] })
    }
    const weighBoth = async (when: string, waitMs = restMs) => {
      await sleep(waitMs)
      await weigh(`API, ${when}`, stack.apis[0]!)
      await weigh(`worker, ${when}`, stack.workers[0]!)
    }
    await sleep(restMs)
    await weigh('bare Koa, idle', koa, false)
    await weigh('bare BullMQ, idle', bullmq, false)
    await weighBoth('idle')
    await weighBoth(`idle for ${idleMs / 60_000} minutes`, idleMs)
    const ids = await createMany(stack)
    await weighBoth(`${sandboxes} sandboxes`)
    const open = await follow(stack, ids)
    await weighBoth(`${sandboxes} sandboxes, ${streams} streams`)
    for (const socket of open) socket.destroy()
    await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
    return {
      rows,
      notes: [
        `Resident memory, including the pages of Node's binary that processes share, read once ${restMs / 1000} s after each change. One process of each kind. The worker holds an open slot in each sandbox that was used within a minute.`,
        `The streams are event streams of background commands, ${readersOfCommand} for each.`,
      ],
    }
  },
}

async function createMany(stack: Stack): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < sandboxes) {
    const count = Math.min(batch, sandboxes - ids.length)
    const made = await Promise.all(
      Array.from({ length: count }, () => stack.request('POST', '/v1/sandboxes', {})),
    )
    ids.push(...made.map(({ id }) => String(id)))
  }
  return ids
}

async function follow(stack: Stack, ids: string[]): Promise<Socket[]> {
  const api = addressOf(stack.apis[0]!)
  const headers = { authorization: `Bearer ${stack.key}`, accept: 'text/event-stream' }
  const open: Socket[] = []
  for (const id of ids.slice(0, streams / readersOfCommand)) {
    const command = { command: ['sleep', '900'], background: true }
    const { id: execId } = await stack.request('POST', `/v1/sandboxes/${id}/exec`, command)
    for (let count = 0; count < readersOfCommand; count++) {
      open.push(await openStream(api, `/v1/sandboxes/${id}/exec/${execId}/stream`, headers))
    }
  }
  return open
}
