/**
 * Commands that nobody follows any more: nobody would end them before their sandbox ends. Those of a
 * worker that is gone are ended by whoever sweeps, which writes down that they are lost; so are those that
 * clients were told are lost, also when their worker is back. Those that their own worker lost, with the
 * connection to them, are ended by that.
 */
import type { Queries } from '../../shared/database/index.ts'
import { listWorkers } from '../../shared/directory.ts'
import { endUnknown, workerLost } from '../../shared/execs.ts'
import { podOf } from '../../shared/sandboxes.ts'
import { stoodStill } from '../../shared/standstill.ts'
import type { WorkerContext } from '../context.ts'
import type { PodName } from '../drivers/driver.ts'
import { signalGroup } from '../shell/run.ts'

/** A worker is gone when it was not there for so long: an emptied Redis knows nobody for a second. */
const goneMs = 5_000
/** Ended in one pass. */
const pageRows = 1_000

interface Orphan {
  id: string
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
  let after = ''

  return async () => {
    const live = await listWorkers(worker).catch(() => undefined)
    // Who does not find itself there cannot tell who is missing.
    if (!live?.some(({ id }) => id === worker.id)) return
    const now = performance.now()
    const missing = await findMissing(worker, live)
    // Nor can who stood still tell for how long.
    if (stoodStill(now - goneMs)) missingSince.clear()
    for (const id of missingSince.keys()) if (!missing.includes(id)) missingSince.delete(id)
    for (const id of missing) if (!missingSince.has(id)) missingSince.set(id, now)
    const gone = missing.filter((id) => now - missingSince.get(id)! >= goneMs)
    // Page by page, so that those that cannot be ended yet keep nobody else from it.
    const page = await findOrphans(worker, gone, after)
    after = page.length < pageRows ? '' : page.at(-1)!.id
    await Promise.all(page.map((orphan) => endOrphan(worker, orphan)))
  }
}

const listed = '(select jsonb_array_elements_text(?::jsonb))'

/** Workers of commands that run, which are not there. */
async function findMissing({ db }: WorkerContext, live: { id: string }[]): Promise<string[]> {
  const rows = await db.query<{ worker_id: string }>(
    `select distinct worker_id from exec where status = 'running' and worker_id not in ${listed}`,
    [JSON.stringify(live.map(({ id }) => id))],
  )
  return rows.map(({ worker_id }) => worker_id)
}

const findOrphans = ({ db }: WorkerContext, gone: string[], after: string): Promise<Orphan[]> =>
  db.query<Orphan & Record<string, unknown>>(
    `select exec.id, pid, sandbox_id, pod_name, pod_uid, destroy_reason, is_left
       from exec join sandbox on sandbox.id = sandbox_id
      where ((status = 'running' and worker_id in ${listed}) or (is_left and pid is not null)) and exec.id > ?
      order by exec.id limit ${pageRows}`,
    [JSON.stringify(gone), after],
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
const writeEnd = (db: Queries, { id, sandbox_id }: Orphan) =>
  db.query(endUnknown(), [sandbox_id, workerLost, id])

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
