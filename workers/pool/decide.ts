/**
 * Decides which warm pods to create in advance and which to delete. One worker at a time adds and removes
 * their rows in the database, and `index.ts` then creates and deletes the pods.
 */
import { readClock } from '../../shared/data/clock.ts'
import type { Queries } from '../../shared/data/database.ts'
import { newWarmPodName } from '../../shared/data/ids.ts'
import { tryLock } from '../../shared/data/locks.ts'
import { countStarting } from '../../shared/data/sandbox-pods.ts'
import {
  addWarmPod,
  findWarmPods,
  removeWarmPod,
  type WarmPodRow as WarmPod,
  warmPodMs,
} from '../../shared/data/warm-pods.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { Driver } from '../drivers/driver.ts'
import { makeDemand } from './demand.ts'
import { allowedStarts, type Plan, type PoolTarget, plan } from './plan.ts'

/** Delay before an image that the cluster refused is tried again. */
const refusalPauseMs = 30_000

type PoolDecision = Pick<Plan, 'remove' | 'resume'> & { added: WarmPod[] }

interface PoolContext extends Pick<Context, 'db' | 'metrics' | 'settings'> {
  driver: Pick<Driver, 'fingerprint'>
  isNewest(): Promise<boolean>
}

export class PoolDecider {
  private readonly pausedUntil = new Map<string, number>()
  private readonly claims = makeClaims()
  private readonly worker: PoolContext
  private readonly sizes: ReturnType<typeof makeDemand>
  private readonly lifeSeconds: number
  private yieldsSince: number | undefined

  constructor(worker: PoolContext) {
    this.worker = worker
    this.sizes = makeDemand(worker.db, worker.settings.pools)
    this.lifeSeconds = warmPodMs / 1000 + worker.settings.sandbox.maxSeconds
  }

  noteRefusal(image: string): void {
    this.pausedUntil.set(image, performance.now() + refusalPauseMs)
  }

  /** Updates the pool's rows and returns the changes, or undefined if a different worker decides. */
  decide(): Promise<PoolDecision | undefined> {
    const { db, settings, isNewest } = this.worker
    return db.transaction(async (queries) => {
      const isOurs = await tryLock(queries, 'pool')
      // Checked again under the lock, so that a worker with older settings never decides after a newer one.
      if (!isOurs || !(await isNewest())) return undefined
      const rows = await findWarmPods(queries)
      const wanted = await this.readWanted()
      const { remove, resume, add } = plan({
        rows,
        wanted,
        now: await readClock(queries),
        startSeconds: settings.sandbox.startSeconds,
        starts: allowedStarts(sum(wanted), ...(await this.readWaiting(queries))),
        quietMs: this.claims.quietMs(rows),
      })
      const removed: WarmPod[] = []
      for (const each of remove) if (await removeWarmPod(queries, each.name)) removed.push(each)
      this.claims.forget(removed)
      const added: WarmPod[] = []
      for (const image of add) {
        const { fingerprint } = wanted.get(image)!
        const pod = { name: newWarmPodName(), image, fingerprint, lifeSeconds: this.lifeSeconds }
        added.push(await addWarmPod(queries, pod))
      }
      reportSizes(this.worker, rows, wanted)
      return { remove: removed, resume, added }
    })
  }

  private async readWanted(): Promise<Map<string, PoolTarget>> {
    const sizes = await this.sizes()
    return new Map(
      [...sizes].map(([image, size]) => {
        const fingerprint = this.worker.driver.fingerprint({ image, deadlineSeconds: this.lifeSeconds })
        const isPaused = (this.pausedUntil.get(image) ?? 0) > performance.now()
        return [image, { size, fingerprint, isPaused }]
      }),
    )
  }

  private async readWaiting(queries: Queries): Promise<[waiting: number, yieldedMs: number]> {
    const waiting = await countStarting(queries)
    this.yieldsSince = waiting > 0 ? (this.yieldsSince ?? performance.now()) : undefined
    return [waiting, this.yieldsSince === undefined ? 0 : performance.now() - this.yieldsSince]
  }
}

const sum = (wanted: Map<string, PoolTarget>) => [...wanted.values()].reduce((all, { size }) => all + size, 0)

function reportSizes(
  { metrics }: Pick<Context, 'metrics'>,
  rows: WarmPod[],
  wanted: Map<string, PoolTarget>,
) {
  metrics.poolPods.reset()
  for (const [image, { size }] of wanted) {
    const pods = rows.filter((row) => row.image === image)
    const ready = pods.filter((row) => row.ready_at).length
    metrics.poolPods.set({ image, state: 'wanted' }, size)
    metrics.poolPods.set({ image, state: 'ready' }, ready)
    metrics.poolPods.set({ image, state: 'starting' }, pods.length - ready)
  }
}

/**
 * Measures the time since a sandbox last claimed a warm pod. A ready pod has been claimed if its row is gone
 * at the next read, unless `forget` was called because the pool itself removed the row.
 */
function makeClaims() {
  let ready = new Set<string>()
  let claimedAt = Number.NEGATIVE_INFINITY
  return {
    quietMs(rows: WarmPod[]): number {
      const now = new Set(rows.filter((row) => row.ready_at).map(({ name }) => name))
      if ([...ready].some((name) => !now.has(name))) claimedAt = performance.now()
      ready = now
      return performance.now() - claimedAt
    },
    forget(removed: WarmPod[]) {
      for (const { name } of removed) ready.delete(name)
    },
  }
}
