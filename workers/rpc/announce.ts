/** Announces this worker to the API processes, every second: that it is there and whether it can make sandboxes. */

import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Context } from '../../shared/platform/context.ts'
import { announceEveryMs, announceWorker, withdrawWorker } from '../../shared/rpc/directory.ts'

/** Milliseconds until a Redis that is away, or not yet connected, is tried again. */
const retryMs = 100
/** Milliseconds that the start of a worker waits for its first announcement. */
const firstMs = 2_000

interface Announced extends Pick<Context, 'log' | 'redis' | 'settings'> {
  id: string
  /** Rejects when it cannot make sandboxes. */
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
    isSetUp = problem?.name !== 'NotSetUp'
    const what = isSetUp ? 'cannot be reached' : 'is not set up for Sandlot'
    driverProblem = problem ? `the cluster ${what}: ${problem.message.split('\n')[0]}` : null
    if (driverProblem !== before)
      log.warn({ problem: driverProblem }, driverProblem ? 'no sandbox can be made' : 'sandboxes can be made')
  }
  const tell = async () => {
    const entry = { id, url, driverProblem, isSetUp, isDraining }
    const [told] = await Promise.allSettled([announceWorker(redis, settings.callsKeys, entry)])
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
    /** From here on the API sends nothing new. The worker stays listed, so that its commands are not taken for lost. */
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
