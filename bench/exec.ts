/**
 * Measures `true` in a pod through kubectl, the client library, and Sandlot's API with and without a slot.
 * One part has one command in flight, the other has 20. Clients pause between commands, so that the next slot
 * can open.
 * Commands that did not find the expected slot are counted but excluded from the results.
 */
import { execFile } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Exec, KubeConfig, type V1Status } from '@kubernetes/client-node'
import { podName } from '../shared/data/ids.ts'
import { containerName } from '../workers/drivers/kubernetes/manifest.ts'
import { median } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, type Row, timed } from './part.ts'
import { type Stack, startStack } from './stack.ts'

const sandboxes = 20
const warmUp = 2
/** Milliseconds between commands. Opening a slot takes about 55 ms on two cores, and each use opens two. */
const pauseMs = (inFlight: number) => 250 + 125 * inFlight

const limits = { slotMs: 15, ofKubectl: 1 / 5 }

interface Way {
  name: string
  run(id: string): Promise<unknown>
  finds?: 'warm' | 'cold'
  prepare?(id: string): Promise<void>
}

interface Times {
  counted: number[]
  leftOut: number
}

const execFileAsync = promisify(execFile)

interface Cluster {
  kubeconfig: string
  namespace: string
}

const kubectl = process.env.KUBECTL ?? 'kubectl'

function throughKubectl({ kubeconfig, namespace }: Cluster): Way {
  const to = ['--kubeconfig', kubeconfig, '--namespace', namespace, 'exec']
  return {
    name: 'kubectl exec',
    run: (id) => execFileAsync(kubectl, [...to, podName(id), '--container', containerName, '--', 'true']),
  }
}

async function versionOfKubectl(): Promise<string | undefined> {
  const { stdout } = await execFileAsync(kubectl, ['version', '--client'])
  return stdout.split('\n')[0]
}

function execInPod({ kubeconfig, namespace }: Cluster) {
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const exec = new Exec(config)
  return async (id: string, argv: string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<V1Status>()
    const [stdout, stderr] = [new PassThrough().resume(), new PassThrough().resume()]
    exec
      .exec(namespace, podName(id), containerName, argv, stdout, stderr, null, false, resolve)
      .then((socket) => socket.on('error', reject), reject)
    const status = await promise
    if (status.status !== 'Success') throw new Error(`${argv[0]} ended with ${JSON.stringify(status)}`)
  }
}

/** Kills a sandbox's waiting shells, so that the next command finds no slot. */
const killSlots = `kill -KILL $(grep -l 'IFS= [r]ead' /proc/[0-9]*/cmdline | cut -d / -f 3) 2>/dev/null; true`

async function throughApi(stack: Stack, id: string): Promise<void> {
  const result = await stack.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] })
  if (result.exit_code !== 0) throw new Error(`true ended with ${JSON.stringify(result)}`)
}

function waysOf(stack: Stack, cluster: Cluster): Way[] {
  const inPod = execInPod(cluster)
  return [
    throughKubectl(cluster),
    { name: 'exec of @kubernetes/client-node', run: (id) => inPod(id, ['true']) },
    { name: 'Sandlot, with a slot', run: (id) => throughApi(stack, id), finds: 'warm' },
    {
      name: 'Sandlot, cold',
      run: (id) => throughApi(stack, id),
      finds: 'cold',
      prepare: (id) => inPod(id, ['/bin/sh', '-c', killSlots]),
    },
  ]
}

async function runOnce(stack: Stack, way: Way, ids: string[]): Promise<Times> {
  await sleep(pauseMs(ids.length))
  if (way.prepare) {
    await Promise.all(ids.map(way.prepare))
    await sleep(pauseMs(ids.length))
  }
  const before = await stack.countOutcomes('sandlot_slots_total')
  const times = await Promise.all(ids.map((id) => timed(() => way.run(id))))
  if (!way.finds) return { counted: times, leftOut: 0 }
  const after = await stack.countOutcomes('sandlot_slots_total')
  const found = (after[way.finds] ?? 0) - (before[way.finds] ?? 0)
  // Excludes the whole round, because the counter does not show which command differed.
  return found === ids.length ? { counted: times, leftOut: 0 } : { counted: [], leftOut: ids.length }
}

async function measure(stack: Stack, ways: Way[], idsOf: (round: number) => string[], rounds: number) {
  const all = new Map<Way, Times>(ways.map((way) => [way, { counted: [], leftOut: 0 }]))
  for (let round = -warmUp; round < rounds; round++) {
    for (const way of ways) {
      const { counted, leftOut } = await runOnce(stack, way, idsOf(round + warmUp))
      const times = all.get(way)!
      if (round < 0) continue
      times.counted.push(...counted)
      times.leftOut += leftOut
    }
  }
  return all
}

const rows = (inFlight: number, times: Map<Way, Times>): Row[] =>
  [...times].map(([{ name, finds }, { counted }]) => ({
    what: `${name}, ${inFlight} in flight`,
    ours: finds !== undefined,
    unit: 'ms',
    values: counted,
  }))

const rounds = {
  one: Number(process.env.BENCH_EXECS ?? 40),
  twenty: Number(process.env.BENCH_EXECS_OF_20 ?? 4),
}

export const exec: Part = {
  title: 'A command: `true`',
  needsCluster: true,
  async measure() {
    const version = await versionOfKubectl()
    await using namespace = await makeNamespace(kubeconfig())
    await using stack = await startStack(namespace.env)
    const cluster = { kubeconfig: namespace.env.KUBECONFIG!, namespace: namespace.env.SANDBOX_NAMESPACE! }
    const ids: string[] = []
    for (let count = 0; count < sandboxes; count++) {
      ids.push(String((await stack.request('POST', '/v1/sandboxes', {})).id))
    }
    const ways = waysOf(stack, cluster)
    // The part with one command in flight runs last, when the code is compiled, because it has few commands.
    const twenty = await measure(stack, ways, () => ids, rounds.twenty)
    const one = await measure(stack, ways, (round) => [ids[round % ids.length]!], rounds.one)
    await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
    const leftOut = [...one.values(), ...twenty.values()].reduce((sum, times) => sum + times.leftOut, 0)
    return {
      rows: [...rows(1, one), ...rows(20, twenty)],
      verdicts: judge(ways, one),
      notes: [
        `kubectl: ${version}.`,
        'A slot is an open shell in the pod. Clients pause between commands, so that every command finds one, unless it was killed before.',
        `With 20 in flight, one command runs in each of ${sandboxes} sandboxes, started simultaneously.`,
        `Commands that found a slot although their row says cold, or the reverse, are left out: ${leftOut}.`,
      ],
    }
  },
}

function judge(ways: Way[], one: Map<Way, Times>) {
  const medianOf = (way: Way) => median(one.get(way)!.counted)
  const slotMs = medianOf(ways.find(({ finds }) => finds === 'warm')!)
  const kubectlMs = medianOf(ways.find(({ name }) => name === 'kubectl exec')!)
  return [
    {
      what: `with a slot at most ${limits.slotMs} ms, one in flight: ${slotMs.toFixed(1)}`,
      met: slotMs <= limits.slotMs,
    },
    {
      what: `at most a fifth of kubectl exec: 1/${(kubectlMs / slotMs).toFixed(1)}`,
      met: slotMs <= kubectlMs * limits.ofKubectl,
    },
  ]
}
