import { prepare, type Queries } from '../../shared/data/database.ts'
import { sandboxIdOfPod } from '../../shared/data/ids.ts'
import type { WorkerContext } from '../context.ts'
import type { PodName } from '../drivers/driver.ts'

/**
 * The one place that deletes pods. The caller may have been frozen since it knew why, so this asks right before whose
 * the pod is. A pod without an owner never gets one again: a name is used once, and passes from the pool to a sandbox
 * in one transaction.
 * @param pod without a uid, any pod of this name is deleted
 */
export async function removePod({ db, driver, log }: WorkerContext, pod: PodName): Promise<void> {
  if (await hasOwner(db, pod)) return log.info({ pod: pod.name }, 'a pod has an owner and is left alone')
  await driver.delete(pod)
}

/** One statement over both tables, so that a claim at this moment shows in one of them. */
const ownedByName = prepare(
  'is a pod owned',
  `select exists (select from warm_pod where name = pod.name)
       or exists (select from sandbox
                   where pod_name = pod.name and reaped_at is null and destroyed_at is null
                     and coalesce(pod_uid = pod.uid, true))
       -- A row of the version before does not name its pod.
       or exists (select from sandbox
                   where id = pod.sandbox_id and pod_name is null and destroyed_at is null
                     and coalesce(pod_uid = pod.uid, true)) as owned
     from (values (?::text, ?::text, ?::text)) as pod (name, uid, sandbox_id)`,
)

/** Whether the pool or a living sandbox owns it. */
async function hasOwner(db: Queries, { name, uid }: PodName): Promise<boolean> {
  const [row] = await db.run<{ owned: boolean }>(ownedByName, [name, uid ?? null, sandboxIdOfPod(name)])
  return row!.owned
}
