/**
 * Measures the latency of typing into a terminal, one key at a time. Exits with 1 if the median exceeds its
 * budget.
 *   [KUBECONFIG=… SANDBOX_IMAGE=…] node bench/keys.ts [KEYS]
 * A key takes a few milliseconds. With buffering or polling, it would take hundreds of milliseconds.
 */
import { WebSocket } from 'ws'
import { machine, median, percentile, table } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { addressOf, startStack } from './stack.ts'

const keys = Number(process.argv[2] ?? 200)
const budgetMs = 200

const { KUBECONFIG } = process.env
await using namespace = KUBECONFIG ? await makeNamespace(KUBECONFIG) : undefined
await using stack = await startStack(namespace?.env ?? { SANDBOX_DRIVER: 'local' })
const { id } = await stack.request('POST', '/v1/sandboxes', {})
const command = await stack.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['cat'], tty: true })
const socket = new WebSocket(
  `${addressOf(stack.apis[0]!).replace('http', 'ws')}/v1/sandboxes/${id}/exec/${command.id}/attach`,
  { headers: { authorization: `Bearer ${stack.key}` } },
)
await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))

const times: number[] = []
for (let count = 0; count < keys; count++) {
  const shown = new Promise((resolve) => socket.once('message', resolve))
  const started = performance.now()
  socket.send(Buffer.from('k'))
  await shown
  times.push(performance.now() - started)
}
socket.terminate()
await stack.request('DELETE', `/v1/sandboxes/${id}`)

const figures = [0.5, 0.9, 0.99].map((share) => `${percentile(times, share).toFixed(1)} ms`)
const driver = namespace ? 'Kubernetes' : 'local'
console.log(`\n${keys} keys, ${machine()}\n`)
console.log(table(['driver', 'median', '90th percentile', '99th'], [[driver, ...figures]]))
if (median(times) > budgetMs) process.exitCode = 1
