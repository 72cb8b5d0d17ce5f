/** Tells the API processes, every second, that this worker is there and whether it reaches the cluster. */
import { announceEveryMs, announceWorker, withdrawWorker } from '../shared/directory.ts'
import type { WorkerContext } from './context.ts'

export interface Announcement {
  /** From here on the API sends nothing new. */
  withdraw(): Promise<void>
}

/**
 * Resolves after the first announcement.
 * @param url where the API finds this worker's internal server
 */
export async function announce(
  { id, redis, driver, log }: WorkerContext,
  url: string,
): Promise<Announcement> {
  let driverProblem: string | null = null
  let withdrawn = false

  const look = async () => {
    const before = driverProblem
    driverProblem = await driver.ping().then(
      () => null,
      (error: Error) => `the cluster cannot be reached: ${error.message.split('\n')[0]}`,
    )
    if (driverProblem !== before)
      log.warn({ problem: driverProblem }, driverProblem ? 'the cluster is away' : 'the cluster is there')
  }
  const beat = async () => {
    await look()
    // Redis may be away: the next beat tries again, and until then nobody is told anything.
    if (!withdrawn) await announceWorker(redis, { id, url, driverProblem }).catch(() => {})
    if (!withdrawn) timer = setTimeout(beat, announceEveryMs)
  }
  let timer: NodeJS.Timeout | undefined
  await beat()

  return {
    async withdraw() {
      withdrawn = true
      clearTimeout(timer)
      await withdrawWorker(redis, id).catch(() => {})
    },
  }
}
