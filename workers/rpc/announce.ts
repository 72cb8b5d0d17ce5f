/** Announces this worker to the API processes, every second: that it is there and whether it reaches the cluster. */

import { within } from '../../shared/platform/patience.ts'
import { announceEveryMs, announceWorker, withdrawWorker } from '../../shared/rpc/directory.ts'
import type { WorkerContext } from '../context.ts'

/** Milliseconds until a Redis that is away, or not yet connected, is tried again. */
const retryMs = 100
/** Milliseconds that the start of a worker waits for its first announcement. */
const firstMs = 2_000

/**
 * Resolves after the first announcement, or when Redis does not take it for a while.
 * @param url the address at which the API reaches this worker's internal server
 */
export async function announce({ id, redis, driver, log, settings }: WorkerContext, url: string) {
  let driverProblem: string | null = null
  let withdrawn = false
  let isDraining = false

  const look = async () => {
    const before = driverProblem
    driverProblem = await driver.ping().then(
      () => null,
      (error: Error) => `the cluster cannot be reached: ${error.message.split('\n')[0]}`,
    )
    if (driverProblem !== before)
      log.warn({ problem: driverProblem }, driverProblem ? 'the cluster is away' : 'the cluster is there')
  }
  const tell = async () => {
    const entry = { id, url, driverProblem, isDraining }
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
  await within(firstMs, first.promise)

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
