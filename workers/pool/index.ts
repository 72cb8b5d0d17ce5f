/**
 * Keeps warm pods: running, owned by nobody, claimed by a create in one transaction (api/sandboxes/admit.ts). Every
 * worker looks once a second, and opens slots for the pods that it is the slot owner of. The newest worker decides what
 * is made and what goes, under an advisory lock; so in a rolling deploy the new settings win. Redis holds nothing of
 * the pool.
 */

import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { PodRefused } from '../drivers/driver.ts'
import type { WarmPodsContext } from '../pods/context.ts'
import { removePod } from '../pods/remove-pod.ts'
import { PoolDecider } from './decide.ts'
import { makeWarmPod } from './make.ts'

const lookEveryMs = 1_000

/** Runs until the signal aborts and the work under way is done. The next worker takes up the rest. */
export async function keepPool(worker: WarmPodsContext, signal: AbortSignal): Promise<void> {
  const { db, driver, log, metrics, settings, slotOwner, slots } = worker
  const { isNewest } = slotOwner
  const decider = new PoolDecider({ db, driver, metrics, settings, isNewest })
  const underWay = new Map<string, Promise<void>>()
  /** Ends the pause before the next look. */
  let pause = new AbortController()
  addAbortListener(signal, () => pause.abort())

  function begin(name: string, work: () => Promise<void>) {
    if (underWay.has(name)) return
    const done = work()
      .catch((error) => {
        if (!signal.aborted) log.warn({ err: error, pod: name }, 'a warm pod is left for later')
      })
      .finally(() => {
        underWay.delete(name)
        pause.abort()
      })
    underWay.set(name, done)
  }

  async function make(row: WarmPod) {
    try {
      await makeWarmPod(worker, row, signal)
      decider.failures.forget(row.image)
    } catch (error) {
      if (error instanceof PodRefused) decider.failures.note(row.image)
      throw error
    }
  }

  async function look(): Promise<WarmPod[]> {
    const rows = await findWarmPods(db)
    for (const { name, uid } of rows) if (uid && slotOwner.owns(name)) slots.prepare(name, { name, uid })
    if (rows.length === 0 && settings.pools.size === 0) return rows
    if (!(await isNewest())) {
      // From here on another worker reports the pool, so this one's figures are reset: the sum over all workers is the
      // pool.
      metrics.poolPods.reset()
      return rows
    }
    const decided = await decider.decide()
    if (decided && decided.remove.length > 0) worker.reach('pool: the row is deleted, its pod is not')
    for (const { name } of decided?.remove ?? []) begin(name, () => removePod(worker, { name }))
    for (const row of [...(decided?.added ?? []), ...(decided?.resume ?? [])])
      begin(row.name, () => make(row))
    return rows
  }

  while (!signal.aborted) {
    let isEmpty = false
    pause = new AbortController()
    try {
      isEmpty = (await look()).length === 0 && settings.pools.size === 0
    } catch (error) {
      log.warn({ err: error }, 'the warm pool could not be looked after; it is tried again')
    }
    const ms = isEmpty ? settings.reconcileIntervalSeconds * 1000 : lookEveryMs
    await sleep(ms, undefined, { signal: pause.signal }).catch(() => {})
  }
  await Promise.all(underWay.values())
}
