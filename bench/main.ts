/**
 * `npm run bench`: how long a create and a command take through the whole API, one right after the
 * other, on the local driver and, where KUBECONFIG names a cluster, on Kubernetes; there also exec.ts.
 *
 *   KUBECONFIG=… SANDBOX_IMAGE=… npm run bench
 *
 * On a cluster it needs an administrator's KUBECONFIG: it makes a namespace of its own and removes it.
 */
import { benchExec } from './exec.ts'
import { machine, percentile, table } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { type Stack, startStack } from './stack.ts'

const creates = 20
const commands = 100
/** Not counted: caches fill and code is compiled. */
const warmUp = 3

interface Figures {
  create: number[]
  exec: number[]
}

async function measure(stack: Stack): Promise<Figures> {
  const figures: Figures = { create: [], exec: [] }
  for (let round = 0; round < warmUp + creates; round++) {
    const [sandbox, ms] = await timed(() => stack.request('POST', '/v1/sandboxes', {}))
    if (round >= warmUp) figures.create.push(ms)
    if (round === warmUp) figures.exec = await measureExec(stack, String(sandbox.id))
    await stack.request('DELETE', `/v1/sandboxes/${sandbox.id}`)
  }
  return figures
}

async function measureExec(stack: Stack, id: string): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < warmUp + commands; round++) {
    const [result, ms] = await timed(() =>
      stack.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] }),
    )
    if (result.exit_code !== 0) throw new Error(`true ended with ${JSON.stringify(result)}`)
    if (round >= warmUp) times.push(ms)
  }
  return times
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const started = performance.now()
  const result = await work()
  return [result, performance.now() - started]
}

async function onLocal(): Promise<Figures> {
  await using stack = await startStack({ SANDBOX_DRIVER: 'local' })
  return await measure(stack)
}

async function onKubernetes(kubeconfig: string): Promise<Figures> {
  await using namespace = await makeNamespace(kubeconfig)
  await using stack = await startStack(namespace.env)
  return await measure(stack)
}

const row = (what: string, times: number[]) => [
  what,
  ...[0.5, 0.9].map((share) => `${percentile(times, share).toFixed(1)} ms`),
  String(times.length),
]

const rows: string[][] = []
const local = await onLocal()
rows.push(row('create, local', local.create), row('exec true, local', local.exec))
const { KUBECONFIG } = process.env
if (KUBECONFIG) {
  const kubernetes = await onKubernetes(KUBECONFIG)
  rows.push(
    row('create (cold), Kubernetes', kubernetes.create),
    row('exec true, Kubernetes', kubernetes.exec),
  )
}
console.log(`\n${machine()}, over HTTP, one right after the other\n`)
console.log(table(['', 'median', '90th percentile', 'runs'], rows))
if (KUBECONFIG) process.exit((await benchExec(KUBECONFIG)) ? 0 : 1)
console.log('\nFor Kubernetes too: KUBECONFIG=… SANDBOX_IMAGE=… npm run bench')
process.exit(0)
