import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Context } from '../../shared/platform/context.ts'
import { announceEveryMs, announceWorker, withdrawWorker } from '../../shared/rpc/worker-registry.ts'

const retryMs = 100
const firstMs = 2_000

interface Announced extends Pick<Context, 'log' | 'redis' | 'settings'> {
  id: string
  /** `ping` rejects if no sandbox can be created. */
  driver: { ping(): Promise<void> }
}

/** Registers the worker. Resolves after the first registration, or after 2 s if Redis is unavailable. */
export async function announce({ id, redis, driver, log, settings }: Announced, url: string) {
  let driverProblem: string | null = null
  let isSetUp = true
  let withdrawn = false
  let isDraining = false

  const checkDriver = async () => {
    const before = driverProblem
    const problem = await driver.ping().then(
      () => undefined,
      (error: Error) => error,
    )
    isSetUp = problem?.name !== 'ClusterMisconfigured'
    const reason = isSetUp ? 'is unreachable' : 'is not set up for Sandlot'
    driverProblem = problem ? `the cluster ${reason}: ${problem.message.split('\n')[0]}` : null
    if (driverProblem !== before)
      log.warn(
        { problem: driverProblem },
        driverProblem ? 'sandboxes cannot be created' : 'sandboxes can be created again',
      )
  }
  const register = async () => {
    const entry = { id, url, driverProblem, isSetUp, isDraining }
    const [result] = await Promise.allSettled([announceWorker(redis, settings.rpcKeys, entry)])
    return result.status === 'fulfilled'
  }
  const beat = async () => {
    await checkDriver()
    if (withdrawn) return
    const isRegistered = await register()
    if (isRegistered) first.resolve()
    if (!withdrawn) timer = setTimeout(beat, isRegistered ? announceEveryMs : retryMs)
  }
  let timer: NodeJS.Timeout | undefined
  const first = Promise.withResolvers<void>()
  void beat()
  await withTimeout(firstMs, first.promise)

  return {
    /** Announces that the worker is draining. It stays registered, so its commands do not count as lost. */
    async drain() {
      isDraining = true
      await register()
    },
    async withdraw() {
      withdrawn = true
      clearTimeout(timer)
      await withdrawWorker(redis, id).catch(() => {})
    },
  }
}
