import type { Ledger } from '../ledger.ts'
import type { Stage } from '../stage.ts'

/** What ARCHITECTURE.md gives the workers to clean up. */
const mendMs = 60_000

/** No pod without a live row, no live row without its pod; and a sandbox that was told destroyed has none. */
export async function checkPods({ world, driver }: Stage, ledger: Ledger): Promise<void> {
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
  await world.eventually(agree, mendMs).catch(() => {
    ledger.wrong('pods and rows do not agree', { rows, pods, afterMs: mendMs })
  })
}
