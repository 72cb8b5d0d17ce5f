import type { Recorder } from '../recorder.ts'
import type { Stage } from '../stage.ts'

/** Time for the workers to reconcile pods and rows, in milliseconds. */
const reconcileMs = 60_000

/** Checks that every pod has an active row, and every active row has a pod. */
export async function checkPods({ world, driver }: Stage, recorder: Recorder): Promise<void> {
  let rows: unknown
  let pods: unknown
  const agree = async () => {
    const found = await world.db.query<{ id: string | null; name: string }>(
      `select id, coalesce(pod_name, replace(id, '_', '-')) as name from sandbox where reaped_at is null
       union all select null, name from warm_pod where ready_at is not null order by name`,
    )
    const living = (await driver.list()).filter(({ death }) => !death)
    rows = found
    pods = living
    const names = (list: { name: string }[]) => JSON.stringify(list.map(({ name }) => name).sort())
    return names(found) === names(living)
  }
  await world.eventually(agree, reconcileMs).catch(() => {
    recorder.wrong('pods and rows do not agree', { rows, pods, afterMs: reconcileMs })
  })
}
