/** Enqueues jobs for workers. Failures are only logged, because the reconciler will do the work later. */
import type { Context } from '../../shared/platform/context.ts'
import { notify } from '../../shared/platform/notify.ts'
import type { Admission } from './admit.ts'

interface Of {
  requestId: string
  log: { warn(fields: object, message: string): void }
}

/** Delay before a job labels a claimed pod. Without it, the job would slow down the first command. */
const assignAfterMs = 500

export async function enqueueCreate(context: Context, admission: Admission, of: Of): Promise<void> {
  const { sandboxId, pod, lifeMs, expired } = admission
  if (!pod) return enqueueDestroy(context, expired, of)
  await allOf(of, [
    pod === 'claimed'
      ? context.jobs.add('assignPod', { sandboxId, requestId: of.requestId }, assignAfterMs)
      : context.jobs.add('createPod', { sandboxId, requestId: of.requestId }),
    context.jobs.add('expire', { sandboxId }, lifeMs),
    enqueueDestroy(context, expired, of),
  ])
}

/**
 * Enqueues the expiry job for a shortened TTL. An extension needs no new job, because the earlier one
 * reschedules itself.
 */
export async function enqueueExpiry(
  context: Context,
  sandboxId: string,
  lifeMs: number,
  of: Of,
): Promise<void> {
  await allOf(of, [context.jobs.add('expire', { sandboxId }, lifeMs)])
}

export async function enqueueDestroy(context: Context, ids: string[], of: Of): Promise<void> {
  await allOf(
    of,
    ids.flatMap((sandboxId) => [
      context.jobs.add('deletePod', { sandboxId, requestId: of.requestId }),
      notify(context.redis, 'sandbox', sandboxId),
    ]),
  )
}

async function allOf({ log }: Of, enqueuing: Promise<void>[]) {
  for (const result of await Promise.allSettled(enqueuing)) {
    if (result.status === 'rejected')
      log.warn({ err: result.reason }, 'could not enqueue a job; the reconciler will do its work')
  }
}
