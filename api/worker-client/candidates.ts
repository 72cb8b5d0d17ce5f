import { setTimeout as sleep } from 'node:timers/promises'
import { noWorker } from '../../shared/data/execs.ts'
import { cacheFor } from '../../shared/lib/cache-for.ts'
import type { Context } from '../../shared/platform/context.ts'
import { wasStalled } from '../../shared/platform/event-loop-stall.ts'
import {
  findEntries,
  inOrderFor,
  type ListedWorker,
  listWorkers,
  takesCalls,
} from '../../shared/rpc/worker-registry.ts'
import type { WorkerHealth } from './health.ts'

const registryMs = 500
const rereadMs = 250
/** How long a missing worker is remembered, so that further calls to it fail without another wait. */
const rememberMs = 10 * 60_000

export class Candidates {
  private readonly list: () => Promise<ListedWorker[]>
  private readonly listNow: () => Promise<ListedWorker[]>
  private readonly lastEntry: (workerId: string) => Promise<ListedWorker | undefined>
  private readonly health: Pick<WorkerHealth, 'isSilent' | 'isAlive'>
  private readonly goneMs: number
  private readonly missing = new Map<string, Promise<ListedWorker[]>>()

  constructor(context: Context, health: Pick<WorkerHealth, 'isSilent' | 'isAlive'>) {
    this.listNow = () => listWorkers(context)
    this.list = cacheFor(registryMs, this.listNow)
    this.lastEntry = async (workerId) => (await findEntries(context, [workerId]))[0]
    this.health = health
    this.goneMs = context.settings.livenessTimeouts.missing
  }

  async listed(isAcceptable: (workers: ListedWorker[]) => boolean): Promise<ListedWorker[]> {
    const remembered = await this.list()
    return isAcceptable(remembered) ? remembered : await this.listNow()
  }

  /**
   * Yields the workers to try, first from the cached list and then from newer lists. Each list begins with
   * the slot owner, the worker that opens shells in the sandbox in advance.
   * @param workerId if set, the only worker that can serve the call
   */
  async *of(sandboxId: string, workerId: string | undefined): AsyncGenerator<ListedWorker> {
    const asked = new Set<string>()
    const listAwaited = () => (asked.size > 0 ? [] : this.listAwaited(workerId))
    for (const list of [this.list, this.listNow, listAwaited]) {
      const isFit = (worker: ListedWorker) =>
        workerId === undefined ? takesCalls(worker) : worker.id === workerId
      const fitting = (await list()).filter(
        (worker) => isFit(worker) && !asked.has(worker.id) && !this.health.isSilent(worker.id),
      )
      for (const { id } of fitting) this.missing.delete(id)
      for (const worker of inOrderFor(sandboxId, fitting)) {
        asked.add(worker.id)
        yield worker
      }
    }
  }

  /**
   * Waits for an unregistered worker to register again. It may be alive and have lost only its connection to
   * Redis.
   */
  private async listAwaited(workerId: string | undefined): Promise<ListedWorker[]> {
    if (workerId === undefined || workerId === noWorker || this.health.isSilent(workerId)) return []
    const known = this.missing.get(workerId)
    if (known) return await known
    const waiting = this.waitFor(workerId)
    this.missing.set(workerId, waiting)
    setTimeout(() => this.missing.delete(workerId), rememberMs).unref()
    return await waiting
  }

  private async waitFor(workerId: string): Promise<ListedWorker[]> {
    const from = performance.now()
    const last = await this.lastEntry(workerId).catch(() => undefined)
    if (last && (await this.health.isAlive(last))) return [last]
    for (; performance.now() - from < this.goneMs; await sleep(rereadMs)) {
      const list = await this.listNow().catch(() => [])
      if (list.some(({ id }) => id === workerId)) return list
    }
    // If the event loop stalled during the wait, waits again.
    return wasStalled(from) ? await this.waitFor(workerId) : []
  }
}
