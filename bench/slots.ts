/**
 * How many commands find a slot, and what that saves: commands at random moments over 20 sandboxes,
 * through one worker and through eight, on Kubernetes; the figures are of the whole API.
 *
 *   KUBECONFIG=… SANDBOX_IMAGE=… node bench/slots.ts [COMMANDS] [A-SECOND]
 *
 * Each command costs the node a slot too, so the pace is bounded by it: two cores carry some 20 a
 * second in all. It needs an administrator's KUBECONFIG, and makes a namespace of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { percentile, table } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { type Stack, startStack } from './stack.ts'

const sandboxes = 20
const [commands = 1_000, aSecond = 8] = process.argv.slice(2).map(Number)

interface Figures {
  times: number[]
  warm: number
  cold: number
}

async function measure(stack: Stack): Promise<Figures> {
  const ids: string[] = []
  for (let count = 0; count < sandboxes; count++) {
    ids.push(String((await stack.request('POST', '/v1/sandboxes', {})).id))
  }
  const times: number[] = []
  const running: Promise<void>[] = []
  for (let count = 0; count < commands; count++) {
    // Clients that know nothing of each other: the gaps are those of a Poisson process.
    await sleep((-Math.log(1 - Math.random()) * 1000) / aSecond)
    const id = ids[Math.floor(Math.random() * ids.length)]!
    const one = runOne(stack, id).then((ms) => void times.push(ms))
    // Told at the end, when all is cleaned up.
    one.catch(() => {})
    running.push(one)
  }
  await Promise.all(running)
  const { warm = 0, cold = 0 } = await stack.countOutcomes('sandlot_slots_total')
  await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
  return { times, warm, cold }
}

async function runOne(stack: Stack, id: string): Promise<number> {
  const started = performance.now()
  const result = await stack.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] })
  if (result.exit_code !== 0) throw new Error(`true ended with ${JSON.stringify(result)}`)
  return performance.now() - started
}

const { KUBECONFIG } = process.env
if (!KUBECONFIG) throw new Error('KUBECONFIG names no cluster')
const rows: string[][] = []
for (const workers of [1, 8]) {
  await using namespace = await makeNamespace(KUBECONFIG)
  await using stack = await startStack(namespace.env, workers)
  const { times, warm, cold } = await measure(stack)
  rows.push([
    String(workers),
    `${((100 * warm) / (warm + cold)).toFixed(1)}% of ${warm + cold}`,
    ...[0.5, 0.9].map((share) => `${percentile(times, share).toFixed(1)} ms`),
  ])
}
console.log(`\n${commands} commands over ${sandboxes} sandboxes, ${aSecond} a second\n`)
console.log(table(['workers', 'found a slot', 'median', '90th percentile'], rows))
process.exit(0)
