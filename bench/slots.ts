/**
 * Measures how many commands find a slot, and the time saved, with random arrivals in 20 sandboxes on
 * Kubernetes.
 *   KUBECONFIG=… SANDBOX_IMAGE=… node bench/slots.ts [COMMANDS] [A-SECOND] [WORKERS]…
 * Fails if a command fails, or if fewer than 95 % of the commands find a slot. Two cores sustain about 20
 * commands per second. Requires an administrator's KUBECONFIG, and creates a namespace.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { machine, percentile, table } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { type Stack, startStack } from './stack.ts'

const sandboxes = 20
const [commands = 1_000, aSecond = 8, ...workerCounts] = process.argv.slice(2).map(Number)
const minShare = 0.95

interface Figures {
  times: number[]
  warm: number
  cold: number
  failures: Error[]
}

async function measure(stack: Stack): Promise<Figures> {
  const ids: string[] = []
  for (let count = 0; count < sandboxes; count++) {
    ids.push(String((await stack.request('POST', '/v1/sandboxes', {})).id))
  }
  const times: number[] = []
  const failures: Error[] = []
  const running: Promise<unknown>[] = []
  for (let count = 0; count < commands; count++) {
    // Clients are independent, so arrivals form a Poisson process.
    await sleep((-Math.log(1 - Math.random()) * 1000) / aSecond)
    const id = ids[Math.floor(Math.random() * ids.length)]!
    running.push(
      runOne(stack, id).then(
        (ms) => times.push(ms),
        (error) => failures.push(error),
      ),
    )
  }
  await Promise.all(running)
  const { warm = 0, cold = 0 } = await stack.countOutcomes('sandlot_slots_total')
  await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
  return { times, warm, cold, failures }
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
let isMet = true
for (const workers of workerCounts.length > 0 ? workerCounts : [1, 8]) {
  await using namespace = await makeNamespace(KUBECONFIG)
  await using stack = await startStack(namespace.env, { workers })
  const { times, warm, cold, failures } = await measure(stack)
  for (const { message } of failures) console.error(message)
  const share = warm / (warm + cold)
  isMet &&= failures.length === 0 && share >= minShare
  rows.push([
    String(workers),
    `${(100 * share).toFixed(1)}% of ${warm + cold}`,
    String(failures.length),
    ...[0.5, 0.9].map((share) => `${percentile(times, share).toFixed(1)} ms`),
  ])
}
console.log(`\n${commands} commands over ${sandboxes} sandboxes, ${aSecond} a second, ${machine()}\n`)
console.log(table(['workers', 'found a slot', 'failed', 'median', '90th percentile'], rows))
process.exit(isMet ? 0 : 1)
