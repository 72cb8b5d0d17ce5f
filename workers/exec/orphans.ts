/**
 * Orphans: commands that no worker follows any more, which would otherwise run until their sandbox ends. The sweep ends
 * those whose worker is gone, and writes down that they are lost. It also ends those that clients were told are lost,
 * even when their worker is back. A worker that lost the connection to a command of its own ends that command itself.
 *
 * A worker is gone when it is not listed and does not answer. One that is only cut off from Redis goes on.
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

/** Commands that one pass ends at most. */
const pageRows = 1_000

type OrphansContext = Pick<ExecContext, 'db' | 'driver' | 'id' | 'log' | 'metrics' | 'redis' | 'settings'>

/** @returns what each pass of the sweep calls. It remembers from pass to pass since when a worker is missing */
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
    // A worker that does not find itself in the list cannot tell who is missing.
    if (!live?.some(({ id }) => id === worker.id)) return
    const now = performance.now()
    const missing = await findMissingWorkers(
      worker.db,
      live.map(({ id }) => id),
    )
    for (const id of missingSince.keys()) if (!missing.includes(id)) missingSince.delete(id)
    for (const id of missing) if (!missingSince.has(id)) missingSince.set(id, now)
    for (const id of await findAlive(missing.filter((id) => isDue(id, now)))) {
      worker.log.warn({ worker: id }, 'a worker is not listed in Redis, and lives: its commands go on')
      missingSince.set(id, now)
    }
    // Nor can one that stood still tell for how long, or who did not answer.
    if (wasStalled(now - goneMs)) missingSince.clear()
    const gone = missing.filter((id) => isDue(id, now))
    // Page by page, so that commands that cannot be ended yet do not keep others from being ended.
    const page = await findOrphans(worker.db, gone, { after, limit: pageRows })
    after = page.length < pageRows ? '' : page.at(-1)!.id
    await Promise.all(page.map((orphan) => endOrphan(worker, orphan)))
  }
}

async function endOrphan({ db, driver, log, metrics }: OrphansContext, orphan: Orphan): Promise<void> {
  // A pod that cannot be reached is tried again by the next pass. Clients are told `lost` meanwhile.
  if (orphan.destroy_reason === null && !(await endProcesses(driver, orphan))) return
  if (orphan.is_left) await markEnded(db, orphan.id)
  else await markOrphanLost(db, { id: orphan.id, sandboxId: orphan.sandbox_id })
  metrics.reconcileActions.inc({ action: 'end orphan' })
  log.info({ exec_id: orphan.id, sandbox_id: orphan.sandbox_id }, 'a command of a lost worker was ended')
}

/** A command without a pid has not started: at most a shell waits on its terminal. @returns false when it may still run */
async function endProcesses(driver: Driver, { id, pid, ...orphan }: Orphan): Promise<boolean> {
  const pod = podOf(orphan)
  if (pid === null) return await killWaitingShells(driver, pod, id)
  return (await killSessions(driver, { pod, leader: pid })) !== 'unreachable'
}

const reachEveryMs = 2_000
const reachTimes = 30

/**
 * Ends what may still run of a command whose exit status is lost, as soon as its pod can be reached. The pod may have no
 * room for one more process, or the connection to it is broken.
 * @returns true once all of it has ended; false when the pod is gone, or could not be reached for a minute
 */
export async function killOrphans(
  { driver, log }: Pick<ExecContext, 'driver' | 'log'>,
  processes: CommandProcesses,
): Promise<boolean> {
  for (let tried = 0; tried < reachTimes; tried++) {
    const end = await killSessions(driver, processes)
    if (end !== 'unreachable') return end === 'ended'
    await new Promise((resolve) => setTimeout(resolve, reachEveryMs).unref())
  }
  log.warn({ pod: processes.pod.name }, 'what a command may have left running could not be ended')
  return false
}
