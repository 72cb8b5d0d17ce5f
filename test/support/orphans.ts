/** Destroys all sandboxes of a world, and checks that nothing remains. */
import { readdirSync, readFileSync } from 'node:fs'
import { Queue } from 'bullmq'
import { markDestroyed } from '../../shared/data/sandbox-writes.ts'
import { openQueue, queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { readPods } from '../../workers/drivers/local/state.ts'
import { letClockRun } from './clock.ts'
import { openWorldDriver } from './drivers.ts'
import { eventually, waitFor } from './eventually.ts'
import type { Process } from './process.ts'
import type { World } from './world.ts'

/** Time for workers to clean up after a crash. */
const cleanMs = 60_000
/** Time for workers to clean up as usual. */
const promptMs = 3_000
/** Time for the kernel and Redis to notice that a process has exited. */
const noticeMs = 5_000

/** Resolves when all pods are deleted and all jobs are done. */
export async function destroyAllSandboxes(world: World): Promise<void> {
  const { db, redis, workers } = world
  const findUnreaped = () => db.query<{ id: string }>('select id from sandbox where reaped_at is null')
  const isOver = async () => {
    if ((await findUnreaped()).length > 0 || (await db.query('select from warm_pod')).length > 0) return false
    return (await unfinishedJobs(world)).length === 0
  }
  // Stops the workers, which would otherwise refill the pool.
  if (world.settings.pools.size > 0) await Promise.all(workers.map((worker) => worker.stop()))
  else if (await isOver()) return
  // The reconciler ignores new rows, and rows never age while the clock is stopped.
  await letClockRun(db)
  // Commands fail while a broken connection is being replaced.
  await eventually(() => redis.status === 'ready', noticeMs)
  const jobs = openQueue(redis)
  for (const { id } of await findUnreaped()) {
    await markDestroyed(db, id, 'requested')
    await jobs.add('deletePod', { sandboxId: id, requestId: 'the end of a test' })
  }
  await jobs.close()
  if (workers.some((worker) => worker.isWell())) {
    const isDone = await waitFor(isOver, promptMs).catch(() => false)
    if (isDone) return
  }
  // Starts a new worker, because the test may have frozen or killed the others.
  await world.startWorker({ RECONCILE_INTERVAL_SECONDS: '0.2', WARM_POOL_SIZE: '', WARM_POOLS: '' })
  await eventually(isOver, cleanMs)
}

/**
 * Checks that nothing remains of a world.
 * @throws {Error} listing pods, processes, jobs and Redis clients that outlived the world's processes
 */
export async function assertNoOrphans(world: World): Promise<void> {
  if (world.workers.length > 0) {
    await assertNone('pods', () => podsOf(world))
    await assertNone('processes', () => processesNaming(`${world.folder}/sandboxes`))
    await assertNone('jobs', () => unfinishedJobs(world))
  }
  await assertNone('clients of Redis', () => clientsOf(world))
}

/** @throws {Error} listing Node's warnings about invalid timer delays */
export function assertNoTimerWarnings(processes: readonly Pick<Process, 'name' | 'lines'>[]): void {
  const warnings = processes.flatMap(({ name, lines }) =>
    lines.filter(({ msg }) => /\bTimeout\w+Warning\b/.test(msg)).map(({ msg }) => `${name}: ${msg}`),
  )
  if (warnings.length > 0) throw new Error(`timers had invalid delays:\n${warnings.join('\n')}`)
}

/** @throws {Error} listing log lines that contain a key twice */
export function assertNoRepeatedKeys(processes: readonly Pick<Process, 'name' | 'repeatedKeys'>[]): void {
  const lines = processes.flatMap(({ name, repeatedKeys }) => repeatedKeys.map((line) => `${name}: ${line}`))
  if (lines.length > 0) throw new Error(`log lines contain the same key twice:\n${lines.join('\n')}`)
}

async function assertNone(what: string, find: () => Promise<string[]> | string[]) {
  let orphans: string[] = []
  const areGone = async () => {
    orphans = await find()
    return orphans.length === 0
  }
  await eventually(areGone, noticeMs).catch((error) => {
    throw orphans.length > 0 ? new Error(`orphaned ${what}:\n${orphans.join('\n')}`) : error
  })
}

async function podsOf(world: World): Promise<string[]> {
  // A local driver would first test its isolation.
  if (!world.cluster) return readPods(world.settings.local.directory).map(({ name }) => name)
  const driver = await openWorldDriver(world)
  try {
    return (await driver.list()).map((pod) => JSON.stringify(pod))
  } finally {
    await driver.close()
  }
}

/**
 * Returns the jobs that a worker would still run, excluding failed jobs and the `expire` jobs of ended
 * sandboxes.
 */
async function unfinishedJobs({ redis, workers }: World): Promise<string[]> {
  const queue = new Queue(queueName, { connection: redis as never, prefix: queuePrefix })
  // A killed worker's active job returns to the queue when the lock expires.
  const isKept = workers.every((worker) => worker.isWell() || worker.hasStopped())
  const states = ['waiting', 'prioritized', 'delayed', ...(isKept ? ['active' as const] : [])] as const
  const jobs = await queue.getJobs([...states])
  await queue.close()
  return jobs
    .filter((job) => !(job.name === 'expire' && job.delay > 0))
    .map((job) => `${job.name} ${JSON.stringify(job.data)}`)
}

/** Redis clients other than the world's own. */
async function clientsOf({ redis }: World): Promise<string[]> {
  const own = await redis.client('ID')
  const clients = String(await redis.client('LIST'))
  return clients
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith(`id=${own} `))
}

function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `${pid} ${commandLine(pid)}`)
    .filter((line) => line.includes(text))
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    // The process has exited.
    return ''
  }
}
