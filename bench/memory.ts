/** Measures the memory of an API and a worker: idle, with 100 sandboxes, and with 1,000 streams. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMebibytes } from './gauges.ts'
import { openStream } from './load.ts'
import { makeNamespace } from './namespace.ts'
import type { Part, Row } from './part.ts'
import { addressOf, type Stack, type StartedProcess, startStack } from './stack.ts'

const sandboxes = Number(process.env.BENCH_SANDBOXES ?? 100)
const streams = Number(process.env.BENCH_STREAMS ?? 1_000)
const followed = 10
const batch = 5
/** Garbage is collected after each change. */
const restMs = 5_000

export const memory: Part = {
  title: 'Memory of a process',
  needsCluster: false,
  async measure() {
    const { KUBECONFIG } = process.env
    // All pods must fit on the test node.
    const small = { SANDBOX_CPU_REQUEST: '5m', SANDBOX_MEMORY_REQUEST: '8Mi' }
    await using namespace = KUBECONFIG ? await makeNamespace(KUBECONFIG) : undefined
    await using stack = await startStack({ ...(namespace?.env ?? { SANDBOX_DRIVER: 'local' }), ...small })
    const koa = await stack.start('bench/bare-koa.ts', ['listening'])
    const bullmq = await stack.start('bench/bare-bullmq.ts', ['working'])
    const rows: Row[] = []
    const weigh = async (what: string, process: StartedProcess, ours = true) => {
      rows.push({ what, ours, unit: 'MiB', values: [residentMebibytes(process)] })
    }
    const weighBoth = async (when: string) => {
      await sleep(restMs)
      await weigh(`API, ${when}`, stack.apis[0]!)
      await weigh(`worker, ${when}`, stack.workers[0]!)
    }
    await sleep(restMs)
    await weigh('bare Koa, idle', koa, false)
    await weigh('bare BullMQ, idle', bullmq, false)
    await weighBoth('idle')
    const ids = await createMany(stack)
    await weighBoth(`${sandboxes} sandboxes`)
    const open = await follow(stack, ids)
    await weighBoth(`${sandboxes} sandboxes, ${streams} streams`)
    for (const socket of open) socket.destroy()
    await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
    return {
      rows,
      notes: [
        `Resident memory, read once ${restMs / 1000} s after each change, on ${KUBECONFIG ? 'Kubernetes, where the worker holds an open slot in each sandbox that was used within a minute' : 'the local driver'}; one process of each kind.`,
        `The streams are event streams of ${followed} background commands, ${streams / followed} for each.`,
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
  for (const id of ids.slice(0, followed)) {
    const command = { command: ['sleep', '900'], background: true }
    const { id: execId } = await stack.request('POST', `/v1/sandboxes/${id}/exec`, command)
    for (let count = 0; count < streams / followed; count++) {
      open.push(await openStream(api, `/v1/sandboxes/${id}/exec/${execId}/stream`, headers))
    }
  }
  return open
}
