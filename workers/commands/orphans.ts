/**
 * Commands whose worker is gone: nobody follows them any more, and nobody would end them before their
 * sandbox ends. Whoever sweeps ends their process groups and writes down that they are lost.
 */
import { listWorkers } from '../../shared/directory.ts'
import type { WorkerContext } from '../context.ts'
import { podName } from '../drivers/driver.ts'
import { signalGroup } from '../shell/run.ts'

/** A worker is gone when it was not there for so long: an emptied Redis knows nobody for a second. */
const goneMs = 5_000

interface Orphan {
  id: string
  worker_id: string
  pid: number | null
  sandbox_id: string
  pod_uid: string | null
  destroy_reason: string | null
}

/** @returns what a pass of the sweep calls; it remembers from pass to pass who is missing since when */
export function makeOrphanSweep(worker: WorkerContext): () => Promise<void> {
  const missingSince = new Map<string, number>()

  return async () => {
    const live = await listWorkers(worker.redis).catch(() => undefined)
    // Who does not find itself there cannot tell who is missing.
    if (!live?.some(({ id }) => id === worker.id)) return
    const there = live.map(({ id }) => id)
    const orphans = await findOrphans(worker, there)
    const now = performance.now()
    for (const id of missingSince.keys()) {
      if (!orphans.some(({ worker_id }) => worker_id === id)) missingSince.delete(id)
    }
    for (const { worker_id } of orphans) {
      if (!missingSince.has(worker_id)) missingSince.set(worker_id, now)
    }
    const due = orphans.filter(({ worker_id }) => now - missingSince.get(worker_id)! >= goneMs)
    await Promise.all(due.map((orphan) => endOrphan(worker, orphan)))
  }
}

const findOrphans = ({ db }: WorkerContext, there: string[]): Promise<Orphan[]> =>
  db.query<Orphan & Record<string, unknown>>(
    `select exec.id, worker_id, pid, sandbox_id, pod_uid, destroy_reason
       from exec join sandbox on sandbox.id = sandbox_id
      where status = 'running' and worker_id not in (${there.map(() => '?').join(', ')})
      limit 1000`,
    there,
  )

async function endOrphan({ db, driver, log, metrics }: WorkerContext, orphan: Orphan): Promise<void> {
  if (orphan.pid !== null && orphan.destroy_reason === null) {
    const pod = { name: podName(orphan.sandbox_id), uid: orphan.pod_uid ?? undefined }
    await signalGroup(driver, pod, orphan.pid, 'KILL')
  }
  await db.query(`update exec set status = ?, reason = ? where id = ? and status = 'running'`, [
    orphan.destroy_reason ? 'killed' : 'lost',
    orphan.destroy_reason ?? 'its worker was lost',
    orphan.id,
  ])
  metrics.sweeps.inc({ action: 'end orphan' })
  log.info({ exec_id: orphan.id, sandbox_id: orphan.sandbox_id }, 'a command of a lost worker was ended')
}
