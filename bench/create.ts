/** Measures one creation at a time: from the warm pool, from a cold start and with `kubectl run`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CreateResult, createOne } from './create-one.ts'
import { percentile } from './figures.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, timed } from './part.ts'
import { openPlainPods } from './plain-pods.ts'
import { type Stack, startStack } from './stack.ts'

const rounds = Number(process.env.BENCH_CREATES ?? 30)
const warmUp = 2
const poolSize = 3
/**
 * Milliseconds to wait until pods have ended and the pool has refilled.
 * Random, because the kubelet checks containers every second, so all rounds would start in the same phase.
 */
const pauseMs = () => 3_000 + Math.random() * 1_000
const limits = { warmMs: 15, warm90Ms: 40, ofKubectl: 0.4 }

export const create: Part = {
  title: 'Creates, one at a time',
  needsCluster: true,
  async measure() {
    const image = process.env.SANDBOX_IMAGE ?? 'debian:bookworm-slim'
    await using warmNamespace = await makeNamespace(kubeconfig())
    await using coldNamespace = await makeNamespace(kubeconfig())
    await using warm = await startStack({ ...warmNamespace.env, WARM_POOL_SIZE: String(poolSize) })
    await using cold = await startStack({ ...coldNamespace.env, WARM_POOL_SIZE: '0' })
    await using plain = await openPlainPods(kubeconfig(), image)
    const times = { warm: [] as number[], cold: [] as number[], plain: [] as number[] }
    let misses = 0
    await sleep(10_000)
    for (let round = -warmUp; round < rounds; round++) {
      const fromPool = await createAndDestroy(warm)
      await sleep(pauseMs())
      const withoutPool = await createAndDestroy(cold)
      await sleep(pauseMs())
      const plainMs = await timed(() => plain.start(`plain-${round + warmUp}`))
      await plain.remove(`plain-${round + warmUp}`)
      if (round < 0) continue
      if (fromPool.isClaimed) times.warm.push(fromPool.ms)
      else misses += 1
      times.cold.push(withoutPool.ms)
      times.plain.push(plainMs)
    }
    const [warmMs, warm90Ms] = [percentile(times.warm, 0.5), percentile(times.warm, 0.9)]
    const share = percentile(times.cold, 0.5) / percentile(times.plain, 0.5)
    return {
      rows: [
        { what: '`kubectl run` and wait', ours: false, unit: 'ms', values: times.plain },
        { what: 'Sandlot, cold', ours: true, unit: 'ms', values: times.cold },
        { what: 'Sandlot, from the warm pool', ours: true, unit: 'ms', values: times.warm },
      ],
      verdicts: [
        {
          what: `warm at most ${limits.warmMs} ms at the median: ${warmMs.toFixed(1)}`,
          met: warmMs <= limits.warmMs,
        },
        {
          what: `warm at most ${limits.warm90Ms} ms at the 90th percentile: ${warm90Ms.toFixed(1)}`,
          met: warm90Ms <= limits.warm90Ms,
        },
        {
          what: `cold at most ${limits.ofKubectl} of \`kubectl run\` and wait: ${share.toFixed(2)}`,
          met: share <= limits.ofKubectl,
        },
      ],
      notes: [
        `Measured over HTTP, through authentication, limits and quotas, until a command can run, and compared with \`kubectl run\` and \`kubectl wait --for=condition=Ready\`, for the same image, which is present on the node.`,
        `The pool has ${poolSize} pods. After each create, a pause of 3 to 4 s lets it refill; the pause is random because the kubelet reports pods once a second. ${misses} of ${rounds} creates found the pool empty and are left out.`,
      ],
    }
  },
}

async function createAndDestroy(stack: Stack): Promise<CreateResult> {
  const created = await createOne(stack)
  await stack.request('DELETE', `/v1/sandboxes/${created.id}`)
  return created
}
