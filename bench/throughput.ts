/** Measures commands per second with many in flight, and the CPU time per command of API and worker. */
import { cpuSeconds } from './gauges.ts'
import { openConnection, postBytes } from './load.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, type Row, timed } from './part.ts'
import { addressOf, type Stack, startStack } from './stack.ts'

const sandboxes = 8
const inFlight = 16
const rounds = Number(process.env.BENCH_THROUGHPUT_ROUNDS ?? 7)
const commandsPerRound = 480

export const throughput: Part = {
  title: `Commands, ${inFlight} in flight`,
  needsCluster: false,
  async measure() {
    const rows = await measureOn('local driver', { SANDBOX_DRIVER: 'local' })
    if (process.env.KUBECONFIG) {
      await using namespace = await makeNamespace(kubeconfig())
      const small = { SANDBOX_CPU_REQUEST: '5m', SANDBOX_MEMORY_REQUEST: '16Mi' }
      rows.push(...(await measureOn('Kubernetes', { ...namespace.env, ...small })))
    }
    return {
      rows,
      notes: [
        `\`true\` in ${sandboxes} sandboxes, ${rounds} rounds of ${commandsPerRound} commands. The client, the databases and the sandboxes run on the same machine. CPU is the user and system time of the process.`,
      ],
    }
  },
}

async function measureOn(driver: string, env: Record<string, string>): Promise<Row[]> {
  await using stack = await startStack(env)
  const ids: string[] = []
  for (let count = 0; count < sandboxes; count++)
    ids.push(String((await stack.request('POST', '/v1/sandboxes', {})).id))
  const row = (what: string, unit: string): Row => ({
    what: `${driver}: ${what}`,
    ours: true,
    unit,
    values: [],
  })
  const speed = row('commands', 'per second')
  const api = row('API', 'ms of CPU per command')
  const worker = row('worker', 'ms of CPU per command')
  await runRound(stack, ids)
  for (let round = 0; round < rounds; round++) {
    const before = { api: cpuSeconds(stack.apis[0]!), worker: cpuSeconds(stack.workers[0]!) }
    const ms = await timed(() => runRound(stack, ids))
    speed.values.push((commandsPerRound / ms) * 1000)
    const perCommand = (seconds: number) => (seconds * 1000) / commandsPerRound
    api.values.push(perCommand(cpuSeconds(stack.apis[0]!) - before.api))
    worker.values.push(perCommand(cpuSeconds(stack.workers[0]!) - before.worker))
  }
  await Promise.all(ids.map((id) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
  return [speed, api, worker]
}

async function runRound({ apis, key }: Stack, ids: string[]): Promise<void> {
  let started = 0
  const lane = async (_: unknown, lane: number) => {
    const path = `/v1/sandboxes/${ids[lane % ids.length]}/exec`
    const request = postBytes(path, key, { command: ['true'] })
    const connection = await openConnection(addressOf(apis[0]!))
    while (started++ < commandsPerRound) {
      const status = await connection.send(request)
      if (status !== 200) throw new Error(`a command was answered with ${status}`)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
}
