import { readClock } from '../../shared/data/clock.ts'
import { adoptPod, markDestroyed, markReady } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf, type SandboxRow, startOf } from '../../shared/data/sandboxes.ts'
import { notify } from '../../shared/platform/notify.ts'
import { type Driver, type Pod, PodRefused } from '../drivers/driver.ts'
import { openSlot, type Slot } from '../shell/slot.ts'
import type { PodsContext } from './context.ts'
import { removePod } from './remove-pod.ts'

/** Creates the pod of a sandbox that is neither ready nor destroyed. Can safely run twice or concurrently. */
export async function createPod(worker: PodsContext, sandboxId: string): Promise<void> {
  const { db, driver, reach } = worker
  const sandbox = await findSandbox(db, sandboxId)
  if (!sandbox || sandbox.destroyed_at || sandbox.ready_at) return
  const now = await readClock(db)
  const deadlineSeconds = Math.ceil((sandbox.max_expires_at.getTime() - now.getTime()) / 1000)
  const startMsLeft = startOf(sandbox).getTime() + worker.settings.sandbox.startSeconds * 1000 - now.getTime()
  // The reconciler ends a sandbox that has expired or did not start in time.
  if (sandbox.expires_at <= now || startMsLeft <= 0) return

  const late = AbortSignal.timeout(startMsLeft)
  const { name } = podOf(sandbox)
  try {
    reach('create: before the pod is created')
    const pod = await driver.create({ name, sandboxId, image: sandbox.image, deadlineSeconds })
    reach('create: the pod exists, its uid is not recorded')
    // A destroy that arrived during the creation takes precedence.
    if (!(await adoptPod(db, sandboxId, pod.uid))) return await removePod(worker, pod)
    reach('create: the uid is recorded, the pod is not ready')
    const slot = await awaitFirstSlot(driver, pod, late)
    reach('create: the pod is ready, the row is not marked ready')
    await finishStart(worker, sandboxId, pod, slot)
  } catch (error) {
    if (!(error instanceof PodRefused)) throw error
    await failStart(worker, sandbox, error.message)
  }
}

/**
 * Waits until commands can run in the pod. If the driver starts processes slowly, checks this by opening the
 * pod's first slot, which is a shell that waits for a command, and returns the slot.
 */
export async function awaitFirstSlot(
  driver: Driver,
  pod: Pod,
  signal: AbortSignal,
): Promise<Slot | undefined> {
  let first: Slot | undefined
  await driver.ready(pod, signal, async () => {
    if (!driver.startsSlowly) return (await driver.start(pod, ['true'])).close()
    const slot = await openSlot(driver, pod)
    if (signal.aborted) slot.close()
    else first = slot
  })
  return first
}

async function finishStart(worker: PodsContext, sandboxId: string, pod: Pod, slot: Slot | undefined) {
  const marking = markReady(worker.db, sandboxId, pod.uid)
  const ready = await (slot?.orClose(marking) ?? marking)
  // If another worker owns this sandbox's slots, that worker opens its own slots when it is notified.
  if (slot && ready && worker.slotOwner.owns(sandboxId)) worker.slots.adopt(sandboxId, pod, slot)
  else slot?.close()
  if (!ready) return await removePod(worker, pod)
  worker.reach('create: the row is ready, no client has been notified')
  worker.metrics.creates.observe({ outcome: 'ready' }, secondsBetween(startOf(ready), ready.ready_at!))
  await notify(worker.redis, 'sandbox', sandboxId)
}

/**
 * Ends a sandbox whose pod cannot start. The sandbox is not billed, and the client receives the cluster's
 * message.
 */
async function failStart(worker: PodsContext, sandbox: SandboxRow, message: string) {
  const ended = await markDestroyed(worker.db, sandbox.id, 'start_failed', message)
  if (ended) {
    worker.metrics.creates.observe(
      { outcome: 'start_failed' },
      secondsBetween(startOf(ended), ended.destroyed_at!),
    )
    worker.log.warn(
      { sandbox_id: sandbox.id, account_id: sandbox.account_id, reason: message },
      'a sandbox did not start',
    )
    await notify(worker.redis, 'sandbox', sandbox.id)
  }
  await removePod(worker, { name: podOf(sandbox).name })
}

const secondsBetween = (from: Date, to: Date) => (to.getTime() - from.getTime()) / 1000
