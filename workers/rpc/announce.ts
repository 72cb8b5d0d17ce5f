/** Registers this worker every second, and whether it can create sandboxes. */

import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Context } from '../../shared/platform/context.ts'
import { announceEveryMs, announceWorker, withdrawWorker } from '../../shared/rpc/directory.ts'

/** Milliseconds between attempts while Redis is unavailable. */
const retryMs = 100
/** Milliseconds that the start of a worker waits for its first announcement. */
const firstMs = 2_000

interface Announced extends Pick<Context, 'log' | 'redis' | 'settings'> {
  id: string
  /** Rejects when it cannot create sandboxes. */
  driver: { ping(): Promise<void> }
}

/**
 * Resolves after the first announcement, or when Redis does not take it for a while.
 * @param url the address of this worker's server of calls
 */
export async function announce({ id, redis, driver, log, settings }: Announced, url: string) {
  let driverProblem: string | null = null
  let isSetUp = true
  let withdrawn = false
  let isDraining = false

  const look = async () => {
    const before = driverProblem
    const problem = await driver.ping().then(
      () => undefined,
      (error: Error) => error,
    )
    isSetUp = problem?.name !== 'ClusterMisconfigured'
    const what = isSetUp ? 'cannot be reached' : 'is not set up for Sandlot'
    driverProblem = problem ? `the cluster ${what}: ${problem.message.split('\n')[0]}` : null
    if (driverProblem !== before)
      log.warn({ problem: driverProblem }, driverProblem ? 'no sandbox can be made' : 'sandboxes can be made')
  }
  const tell = async () => {
    const entry = { id, url, driverProblem, isSetUp, isDraining }
    const [told] = await Promise.allSettled([announceWorker(redis, settings.rpcKeys, entry)])
    return told.status === 'fulfilled'
  }
  const beat = async () => {
    await look()
    if (withdrawn) return
    const told = await tell()
    if (told) first.resolve()
    if (!withdrawn) timer = setTimeout(beat, told ? announceEveryMs : retryMs)
  }
  let timer: NodeJS.Timeout | undefined
  const first = Promise.withResolvers<void>()
  void beat()
  await withTimeout(firstMs, first.promise)

  return {
    /** From now on, the API sends no new work. The worker stays registered, so its commands are not considered lost. */
    async drain() {
      isDraining = true
      await tell()
    },
    async withdraw() {
      withdrawn = true
      clearTimeout(timer)
      await withdrawWorker(redis, id).catch(() => {})
    },
  }
}
