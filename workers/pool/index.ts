/**
 * Keeps warm pods: running, owned by nobody, claimed by a create in one transaction (api/sandboxes/admit.ts). Every
 * worker looks once a second, and opens slots for the pods that it is the slot owner of. The newest worker decides what
 * is made and what goes, under an advisory lock; so in a rolling deploy the new settings win. Redis holds nothing of
 * the pool.
 */
import { addAbortListener } from 'node:events'
import type { Queries } from '../../shared/data/database.ts'
import { newWarmPodName } from '../../shared/data/ids.ts'
import { tryLock } from '../../shared/data/locks.ts'
import { warmPodMs } from '../../shared/data/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import { PodRefused } from '../drivers/driver.ts'
import { removePod } from '../pods/remove-pod.ts'
import { readClock } from '../pods/sandbox-rows.ts'
import { makeDemand } from './demand.ts'
import { makeWarmPod } from './make.ts'
import { allowedStarts, type Plan, type PoolTarget, plan } from './plan.ts'
import { addWarmPod, countStarting, findWarmPods, removeWarmPod, type WarmPod } from './rows.ts'

const lookEveryMs = 1_000
/** Milliseconds until a refused image is tried again; doubled after each refusal. */
const backOffMs = { least: 5_000, most: 300_000 }

/** What is decided in one transaction, and done after it. */
type PoolDecision = Pick<Plan, 'remove' | 'resume'> & { added: WarmPod[] }

/** Runs until the signal aborts and the work under way is done. The next worker takes up the rest. */
export async function keepPool(worker: WorkerContext, signal: AbortSignal): Promise<void> {
  const { db, driver, slotOwner, log, settings, slots } = worker
  const demand = makeDemand(db, settings.pools)
  const failures = makeFailures()
  const claims = makeClaims()
  const underWay = new Map<string, Promise<void>>()
  let bell = makeBell()
  let yieldsSince: number | undefined

  /** @returns what to do; undefined when another worker decides */
  const decide = (): Promise<PoolDecision | undefined> =>
    db.transaction(async (queries) => {
      const isOurs = await tryLock(queries, 'pool')
      // Asked again under the lock, so that no worker with older settings decides after a newer one.
      if (!isOurs || !(await slotOwner.isNewest())) return undefined
      const rows = await findWarmPods(queries)
      const wanted = await readWanted()
      const { remove, resume, add } = plan({
        rows,
        wanted,
        now: await readClock(queries),
        startSeconds: settings.sandbox.startSeconds,
        starts: allowedStarts(sum(wanted), ...(await readWaiting(queries))),
        quietMs: claims.quietMs(rows),
      })
      const removed: WarmPod[] = []
      for (const each of remove) if (await removeWarmPod(queries, each.name)) removed.push(each)
      claims.forget(removed)
      const added: WarmPod[] = []
      for (const image of add) {
        const { fingerprint } = wanted.get(image)!
        added.push(await addWarmPod(queries, { name: newWarmPodName(), image, fingerprint }, lifeSeconds))
      }
      tellSizes(worker, rows, wanted)
      return { remove: removed, resume, added }
    })

  const lifeSeconds = warmPodMs / 1000 + settings.sandbox.maxSeconds

  async function readWanted(): Promise<Map<string, PoolTarget>> {
    const sizes = await demand.sizes()
    return new Map(
      [...sizes].map(([image, size]) => {
        const fingerprint = driver.fingerprint({ image, deadlineSeconds: lifeSeconds })
        return [image, { size, fingerprint, isPaused: failures.arePaused(image) }]
      }),
    )
  }

  async function readWaiting(queries: Queries): Promise<[waiting: number, yieldedMs: number]> {
    const waiting = await countStarting(queries)
    yieldsSince = waiting > 0 ? (yieldsSince ?? performance.now()) : undefined
    return [waiting, yieldsSince === undefined ? 0 : performance.now() - yieldsSince]
  }

  function begin(name: string, work: () => Promise<void>) {
    if (underWay.has(name)) return
    const done = work()
      .catch((error) => {
        if (!signal.aborted) log.warn({ err: error, pod: name }, 'a warm pod is left for later')
      })
      .finally(() => {
        underWay.delete(name)
        bell.ring()
      })
    underWay.set(name, done)
  }

  async function make(row: WarmPod) {
    try {
      await makeWarmPod(worker, row, signal)
      failures.forget(row.image)
    } catch (error) {
      if (error instanceof PodRefused) failures.note(row.image)
      throw error
    }
  }

  async function look(): Promise<WarmPod[]> {
    const rows = await findWarmPods(db)
    for (const { name, uid } of rows) if (uid && slotOwner.owns(name)) slots.prepare(name, { name, uid })
    if (rows.length === 0 && settings.pools.size === 0) return rows
    if (!(await slotOwner.isNewest())) {
      // From here on another worker reports the pool, so this one's figures are reset: the sum over all workers is the
      // pool.
      worker.metrics.poolPods.reset()
      return rows
    }
    const decided = await decide()
    if (decided && decided.remove.length > 0) worker.reach('pool: the row is gone, its pod lives')
    for (const { name } of decided?.remove ?? []) begin(name, () => removePod(worker, { name }))
    for (const row of [...(decided?.added ?? []), ...(decided?.resume ?? [])])
      begin(row.name, () => make(row))
    return rows
  }

  while (!signal.aborted) {
    let isEmpty = false
    bell = makeBell()
    try {
      isEmpty = (await look()).length === 0 && settings.pools.size === 0
    } catch (error) {
      log.warn({ err: error }, 'the warm pool could not be looked after; it is tried again')
    }
    await bell.heard(isEmpty ? settings.sweepSeconds * 1000 : lookEveryMs, signal)
  }
  await Promise.all(underWay.values())
}

const sum = (wanted: Map<string, PoolTarget>) => [...wanted.values()].reduce((all, { size }) => all + size, 0)

function tellSizes({ metrics }: WorkerContext, rows: WarmPod[], wanted: Map<string, PoolTarget>) {
  metrics.poolPods.reset()
  for (const [image, { size }] of wanted) {
    const pods = rows.filter((row) => row.image === image)
    const ready = pods.filter((row) => row.ready_at).length
    metrics.poolPods.set({ image, state: 'wanted' }, size)
    metrics.poolPods.set({ image, state: 'ready' }, ready)
    metrics.poolPods.set({ image, state: 'starting' }, pods.length - ready)
  }
}

/** Tells how long ago a pod was claimed: one that was ready at the last look and is gone at this one. */
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

/** Remembers images that the cluster refused lately. */
function makeFailures() {
  const known = new Map<string, { ms: number; until: number }>()
  return {
    note(image: string) {
      const ms = Math.min(backOffMs.most, (known.get(image)?.ms ?? backOffMs.least / 2) * 2)
      known.set(image, { ms, until: performance.now() + ms })
    },
    forget: (image: string) => known.delete(image),
    arePaused: (image: string) => (known.get(image)?.until ?? 0) > performance.now(),
  }
}

function makeBell() {
  const { promise: rung, resolve } = Promise.withResolvers<void>()
  const ring = () => resolve()
  return {
    ring,
    /** Resolves when it rings, at the latest after `ms`, at once when the signal aborts. */
    async heard(ms: number, signal: AbortSignal) {
      const timer = setTimeout(ring, ms)
      using _ringing = addAbortListener(signal, ring)
      await rung
      clearTimeout(timer)
    },
  }
}
