/**
 * Kills orphans (commands whose worker is gone) and records them as lost.
 * A worker counts as gone if it is not registered in Redis and does not respond. A worker that has only lost
 * its connection to Redis therefore keeps its commands.
 */
import { markEnded, markOrphanLost } from '../../shared/data/exec-writes.ts'
import { findMissingWorkers, findOrphans, type Orphan } from '../../shared/data/execs.ts'
import { podOf } from '../../shared/data/sandboxes.ts'
import { wasStalled } from '../../shared/platform/event-loop-stall.ts'
import { checkLiveness } from '../../shared/rpc/alive.ts'
import { openCallAgent } from '../../shared/rpc/channel.ts'
import { findEntries, listWorkers } from '../../shared/rpc/worker-registry.ts'
import type { Driver } from '../drivers/driver.ts'
import { killSessions } from '../shell/kill.ts'
import type { CommandProcesses } from '../shell/slot.ts'
import { killWaitingShells } from '../shell/terminal.ts'
import type { ExecContext } from './context.ts'

const pageRows = 1_000

type OrphansContext = Pick<ExecContext, 'db' | 'driver' | 'id' | 'log' | 'metrics' | 'redis' | 'settings'>

/**
 * Returns a function that kills the current orphans. Between calls, it remembers how long each worker has
 * been missing.
 */
export function makeOrphanReconciler(worker: OrphansContext): () => Promise<void> {
  const missingSince = new Map<string, number>()
  const agent = openCallAgent()
  let after = ''

  const { missing: goneMs, missingAnswer: answerMs } = worker.settings.livenessTimeouts
  const isDue = (id: string, now: number) => now - (missingSince.get(id) ?? now) >= goneMs

  async function findAlive(ids: string[]): Promise<string[]> {
    const entries = await findEntries(worker, ids)
    const answers = await Promise.all(entries.map((entry) => checkLiveness(entry, agent, answerMs)))
    return entries.filter((_, at) => answers[at] === 'alive').map(({ id }) => id)
  }

  return async () => {
    const live = await listWorkers(worker).catch(() => undefined)
    // A registry that does not list this worker may be incomplete, so no worker counts as missing.
    if (!live?.some(({ id }) => id === worker.id)) return
    const now = performance.now()
    const missing = await findMissingWorkers(
      worker.db,
      live.map(({ id }) => id),
    )
    for (const id of missingSince.keys()) if (!missing.includes(id)) missingSince.delete(id)
    for (const id of missing) if (!missingSince.has(id)) missingSince.set(id, now)
    for (const id of await findAlive(missing.filter((id) => isDue(id, now)))) {
      worker.log.warn(
        { worker: id },
        'a worker is not registered in Redis, but responds; its commands keep running',
      )
      missingSince.set(id, now)
    }
    // After an event-loop stall, a missing response does not mean that the peer is dead.
    if (wasStalled(now - goneMs)) missingSince.clear()
    const gone = missing.filter((id) => isDue(id, now))
    // Paginated, so that orphans in unreachable pods do not block the others.
    const page = await findOrphans(worker.db, gone, { after, limit: pageRows })
    after = page.length < pageRows ? '' : page.at(-1)!.id
    await Promise.all(page.map((orphan) => killOrphan(worker, orphan)))
  }
}

async function killOrphan({ db, driver, log, metrics }: OrphansContext, orphan: Orphan): Promise<void> {
  // The next pass retries an unreachable pod. Until then the API reports the command as lost.
  if (orphan.destroy_reason === null && !(await killProcesses(driver, orphan))) return
  if (orphan.is_left) await markEnded(db, orphan.id)
  else await markOrphanLost(db, { id: orphan.id, sandboxId: orphan.sandbox_id })
  metrics.reconcileActions.inc({ action: 'end orphan' })
  const ids = {
    worker_id: orphan.worker_id,
    exec_id: orphan.id,
    sandbox_id: orphan.sandbox_id,
    account_id: orphan.account_id,
  }
  // If `is_left` is set, the process that reported the command as lost has already logged the loss.
  if (orphan.is_left || orphan.destroy_reason !== null) log.info(ids, "killed a lost worker's command")
  else log.warn(ids, 'a command is lost, because its worker is gone')
}

/**
 * Kills an orphan's processes. An orphan without a recorded pid never started, so at most the shell that was
 * to run it in a terminal exists.
 * @returns false if processes may still be running
 */
async function killProcesses(driver: Driver, { id, pid, ...orphan }: Orphan): Promise<boolean> {
  const pod = podOf(orphan)
  if (pid === null) return await killWaitingShells(driver, pod, id)
  return (await killSessions(driver, { pod, leader: pid })) !== 'unreachable'
}

const retryMs = 2_000
const maxAttempts = 30

/**
 * Kills the remaining processes of a lost command. Retries for a minute, because the connection to the pod
 * may be broken.
 * @returns false if the pod is gone or remained unreachable
 */
export async function killOrphans(
  { driver, log }: Pick<ExecContext, 'driver' | 'log'>,
  processes: CommandProcesses,
): Promise<boolean> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const end = await killSessions(driver, processes)
    if (end !== 'unreachable') return end === 'ended'
    await new Promise((resolve) => setTimeout(resolve, retryMs).unref())
  }
  log.warn({ pod: processes.pod.name }, 'the remaining processes of a lost command could not be killed')
  return false
}
