/**
 * Compares 30 concurrent creations, with and without a warm pool, to 30 concurrent `kubectl run` commands.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CreateResult, createOne } from './create-one.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, timed } from './part.ts'
import { openPlainPods } from './plain-pods.ts'
import { type Stack, startStack } from './stack.ts'

const atOnce = Number(process.env.BENCH_BURST ?? 30)
const poolSize = Math.ceil(atOnce / 3)
const rounds = Number(process.env.BENCH_BURST_ROUNDS ?? 2)
/** Pods end and the pool refills after each round. */
const pauseMs = 20_000

export const burst: Part = {
  title: `${atOnce} concurrent creates`,
  needsCluster: true,
  async measure() {
    const image = process.env.SANDBOX_IMAGE ?? 'debian:bookworm-slim'
    // All pods must fit on the test node.
    const small = { SANDBOX_CPU_REQUEST: '5m', SANDBOX_MEMORY_REQUEST: '16Mi' }
    await using warmNamespace = await makeNamespace(kubeconfig())
    await using coldNamespace = await makeNamespace(kubeconfig())
    await using warm = await startStack({ ...warmNamespace.env, ...small, WARM_POOL_SIZE: String(poolSize) })
    await using cold = await startStack({ ...coldNamespace.env, ...small, WARM_POOL_SIZE: '0' })
    await using plain = await openPlainPods(kubeconfig(), image)
    const times = {
      claimed: [] as number[],
      missed: [] as number[],
      cold: [] as number[],
      plain: [] as number[],
    }
    for (let round = 0; round < rounds; round++) {
      await sleep(pauseMs)
      for (const { ms, isClaimed } of await createMany(warm))
        (isClaimed ? times.claimed : times.missed).push(ms)
      await sleep(pauseMs)
      times.cold.push(...(await createMany(cold)).map(({ ms }) => ms))
      await sleep(pauseMs)
      const names = Array.from({ length: atOnce }, (_, at) => `plain-${round}-${at}`)
      times.plain.push(...(await Promise.all(names.map((name) => timed(() => plain.start(name))))))
      await Promise.all(names.map((name) => plain.remove(name)))
    }
    return {
      rows: [
        { what: '`kubectl run` and wait', ours: false, unit: 'ms', values: times.plain },
        { what: 'Sandlot, no pool', ours: true, unit: 'ms', values: times.cold },
        {
          what: `Sandlot, pool of ${poolSize}: pool empty`,
          ours: true,
          unit: 'ms',
          values: times.missed,
        },
        { what: `Sandlot, pool of ${poolSize}: claimed`, ours: true, unit: 'ms', values: times.claimed },
      ],
      notes: [
        `${atOnce} requests are sent simultaneously, in ${rounds} rounds that alternate between the three variants. The node limits how fast pods start, for all three alike.`,
      ],
    }
  },
}

async function createMany(stack: Stack): Promise<CreateResult[]> {
  const all = await Promise.all(Array.from({ length: atOnce }, () => createOne(stack)))
  await Promise.all(all.map(({ id }) => stack.request('DELETE', `/v1/sandboxes/${id}`)))
  return all
}
