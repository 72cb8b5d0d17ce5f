/**
 * Maintains the warm pool. A warm pod belongs to no account until a create request claims it, in the same
 * transaction that admits the request (`api/sandboxes/admit.ts`).
 *
 * Only the newest worker creates and deletes pods, under an advisory lock, so that a rolling deployment uses
 * the new settings.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { logRepeatable } from '../../shared/platform/log.ts'
import { PodRefused } from '../drivers/driver.ts'
import type { WarmPodsContext } from '../pods/context.ts'
import { removePod } from '../pods/remove-pod.ts'
import { PoolDecider } from './decide.ts'
import { makeWarmPod } from './make.ts'

const readIntervalMs = 1_000

export async function keepPool(worker: WarmPodsContext, signal: AbortSignal): Promise<void> {
  const { db, driver, log, metrics, settings, slotOwner, slots } = worker
  const { isNewest } = slotOwner
  const decider = new PoolDecider({ db, driver, metrics, settings, isNewest })
  const running = new Map<string, Promise<void>>()
  let pause = new AbortController()
  addAbortListener(signal, () => pause.abort())

  function begin(name: string, work: () => Promise<void>) {
    if (running.has(name)) return
    const done = work()
      .catch((error) => {
        if (!signal.aborted)
          logRepeatable(
            log,
            'warn',
            { err: error, pod: name },
            'a warm pod operation failed; it will be retried',
          )
      })
      .finally(() => {
        running.delete(name)
        pause.abort()
      })
    running.set(name, done)
  }

  async function make(row: WarmPod) {
    try {
      await makeWarmPod(worker, row, signal)
    } catch (error) {
      if (error instanceof PodRefused) decider.noteRefusal(row.image)
      throw error
    }
  }

  /** Updates the pool. Returns false if no pool is configured and no warm pod is left. */
  async function updatePool(): Promise<boolean> {
    const rows = await findWarmPods(db)
    for (const { name, uid } of rows) if (uid && slotOwner.owns(name)) slots.prepare(name, { name, uid })
    if (rows.length === 0 && settings.pools.size === 0) return false
    if (!(await isNewest())) {
      // The metrics are summed over all workers, so only the newest worker may report the pool.
      metrics.poolPods.reset()
      return true
    }
    const decided = await decider.decide()
    if (decided && decided.remove.length > 0) worker.reach('pool: the row is deleted, its pod is not')
    for (const { name } of decided?.remove ?? []) begin(name, () => removePod(worker, { name }))
    for (const row of [...(decided?.added ?? []), ...(decided?.resume ?? [])])
      begin(row.name, () => make(row))
    return true
  }

  while (!signal.aborted) {
    let hasPool = true
    pause = new AbortController()
    try {
      hasPool = await updatePool()
    } catch (error) {
      log.warn({ err: error }, 'the warm pool could not be updated; it will be retried')
    }
    const ms = hasPool ? readIntervalMs : settings.reconcileIntervalSeconds * 1000
    await sleep(ms, undefined, { signal: pause.signal }).catch(() => {})
  }
  await Promise.all(running.values())
}
