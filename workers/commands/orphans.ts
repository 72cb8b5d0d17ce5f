/**
 * Commands that nobody follows any more: nobody would end them before their sandbox ends. Those of a
 * worker that is gone are ended by whoever sweeps, which writes down that they are lost; so are those that
 * clients were told are lost, also when their worker is back. Those that their own worker lost, with the
 * connection to them, are ended by that.
 */
import type { Queries } from '../../shared/database/index.ts'
import { listWorkers } from '../../shared/directory.ts'
import { execDurationMs, workerLost } from '../../shared/execs.ts'
import { podOf } from '../../shared/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import type { PodName } from '../drivers/driver.ts'
import { signalGroup } from '../shell/run.ts'

/** A worker is gone when it was not there for so long: an emptied Redis knows nobody for a second. */
const goneMs = 5_000

interface Orphan {
  id: string
  worker_id: string
  pid: number | null
  sandbox_id: string
  pod_name: string | null
  pod_uid: string | null
  destroy_reason: string | null
  /** Clients were told that it is lost. */
  is_left: boolean
}

/** @returns what a pass of the sweep calls; it remembers from pass to pass who is missing since when */
export function makeOrphanSweep(worker: WorkerContext): () => Promise<void> {
  const missingSince = new Map<string, number>()

  return async () => {
    const live = await listWorkers(worker).catch(() => undefined)
    // Who does not find itself there cannot tell who is missing.
    if (!live?.some(({ id }) => id === worker.id)) return
    const there = live.map(({ id }) => id)
    const orphans = await findOrphans(worker, there)
    const now = performance.now()
    for (const id of missingSince.keys()) {
      if (there.includes(id) || !orphans.some(({ worker_id }) => worker_id === id)) missingSince.delete(id)
    }
    const isDue = ({ worker_id }: Orphan) => {
      if (there.includes(worker_id)) return true
      if (!missingSince.has(worker_id)) missingSince.set(worker_id, now)
      return now - missingSince.get(worker_id)! >= goneMs
    }
    const due = orphans.filter(isDue)
    await Promise.all(due.map((orphan) => endOrphan(worker, orphan)))
  }
}

const findOrphans = ({ db }: WorkerContext, there: string[]): Promise<Orphan[]> =>
  db.query<Orphan & Record<string, unknown>>(
    `select exec.id, worker_id, pid, sandbox_id, pod_name, pod_uid, destroy_reason, is_left
       from exec join sandbox on sandbox.id = sandbox_id
      where (status = 'running' and worker_id not in (${there.map(() => '?').join(', ')}))
         or (is_left and pid is not null)
      limit 1000`,
    there,
  )

async function endOrphan({ db, driver, log, metrics }: WorkerContext, orphan: Orphan): Promise<void> {
  if (orphan.pid !== null && orphan.destroy_reason === null) {
    const pod = podOf({ ...orphan, id: orphan.sandbox_id })
    // A pod that is out of reach is tried again by the next pass: clients are told that it is lost all the same.
    if (!(await signalGroup(driver, pod, orphan.pid, 'KILL'))) return
  }
  if (orphan.is_left) await db.query('update exec set is_left = false where id = ?', [orphan.id])
  else await writeEnd(db, orphan)
  metrics.sweeps.inc({ action: 'end orphan' })
  log.info({ exec_id: orphan.id, sandbox_id: orphan.sandbox_id }, 'a command of a lost worker was ended')
}

/** What it printed went with its worker. */
const writeEnd = (db: Queries, { id, destroy_reason }: Orphan) =>
  db.query(
    `update exec set status = ?, reason = ?, truncated = true, duration_ms = ${execDurationMs}
      where id = ? and status = 'running'`,
    [destroy_reason ? 'killed' : 'lost', destroy_reason ?? workerLost, id],
  )

const reachEveryMs = 2_000
const reachTimes = 30

/**
 * Ends what may still run of a command whose own end is not known, as soon as its pod can be reached: the way
 * to it was cut, or the pod had no room for one process more.
 */
export async function endLeftovers(
  { driver, log }: Pick<WorkerContext, 'driver' | 'log'>,
  pod: PodName,
  pid: number,
): Promise<void> {
  for (let tried = 0; tried < reachTimes; tried++) {
    if (await signalGroup(driver, pod, pid, 'KILL')) return
    await new Promise((resolve) => setTimeout(resolve, reachEveryMs).unref())
  }
  log.warn({ pod: pod.name }, 'what a command may have left running could not be ended')
}
