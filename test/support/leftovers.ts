/** At the end of a world: everything is destroyed, and then nothing may be left. */
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

/** What ARCHITECTURE.md gives the workers to clean up, whatever was killed before. */
const cleanMs = 60_000
/** Workers that are well need no more for what is left at the end of most tests. */
const promptMs = 3_000
/** In which the kernel and Redis notice that a process has ended; no worker is left to clean up. */
const noticeMs = 5_000

/** Ends every sandbox, and waits until the workers have seen the last of their pods and have no job left. */
export async function destroyAllSandboxes(world: World): Promise<void> {
  const { db, redis, workers } = world
  const findUnreaped = () => db.query<{ id: string }>('select id from sandbox where reaped_at is null')
  const isOver = async () => {
    if ((await findUnreaped()).length > 0 || (await db.query('select from warm_pod')).length > 0) return false
    return (await unfinishedJobs(world)).length === 0
  }
  // A worker with those settings would fill it again.
  if (world.settings.pools.size > 0) await Promise.all(workers.map((worker) => worker.stop()))
  else if (await isOver()) return
  // The sweep leaves what is newer than some seconds to the jobs.
  await letClockRun(db)
  // It fails at once while Redis is away, as for a connection that was silent while a test held up this process.
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
  // Whether those that were there still work is for the test to say.
  await world.startWorker({ RECONCILE_INTERVAL_SECONDS: '0.2', WARM_POOL_SIZE: '', WARM_POOLS: '' })
  await eventually(isOver, cleanMs)
}

/** @throws names every pod, process, job and client of Redis that outlived the world's processes */
export async function assertNothingLeft(world: World): Promise<void> {
  if (world.workers.length > 0) {
    await assertNone('pods', () => podsOf(world))
    await assertNone('processes', () => processesNaming(`${world.folder}/sandboxes`))
    await assertNone('jobs', () => unfinishedJobs(world))
  }
  await assertNone('clients of Redis', () => clientsOf(world))
}

/** @throws names what Node warned of: a timer with a delay that is negative, too long or no number */
export function assertNoTimerWarnings(processes: readonly Pick<Process, 'name' | 'lines'>[]): void {
  const warnings = processes.flatMap(({ name, lines }) =>
    lines.filter(({ msg }) => /\bTimeout\w+Warning\b/.test(msg)).map(({ msg }) => `${name}: ${msg}`),
  )
  if (warnings.length > 0) throw new Error(`timers were set to what is no delay:\n${warnings.join('\n')}`)
}

async function assertNone(what: string, find: () => Promise<string[]> | string[]) {
  let left: string[] = []
  const areGone = async () => {
    left = await find()
    return left.length === 0
  }
  await eventually(areGone, noticeMs).catch((error) => {
    throw left.length > 0 ? new Error(`${what} were left behind:\n${left.join('\n')}`) : error
  })
}

async function podsOf(world: World): Promise<string[]> {
  // A local driver begins with a trial of its walls.
  if (!world.cluster) return (await readPods(world.settings.local.directory)).map(({ name }) => name)
  const driver = await openWorldDriver(world)
  try {
    return (await driver.list()).map((pod) => JSON.stringify(pod))
  } finally {
    await driver.close()
  }
}

/**
 * Jobs that some worker would still do. Two kinds are left on purpose: a sandbox that ends early leaves its `expire`
 * until its cap, when that finds nothing to do, and a job that has failed for good is kept a day for the operator.
 */
async function unfinishedJobs({ redis, workers }: World): Promise<string[]> {
  const queue = new Queue(queueName, { connection: redis as never, prefix: queuePrefix })
  // What a killed worker was at comes back to the queue once its lock has run out; the sweep does not wait for that.
  const isKept = workers.every((worker) => worker.isWell() || worker.hasStopped())
  const states = ['waiting', 'prioritized', 'delayed', ...(isKept ? ['active' as const] : [])] as const
  const jobs = await queue.getJobs([...states])
  await queue.close()
  return jobs
    .filter((job) => !(job.name === 'expire' && job.delay > 0))
    .map((job) => `${job.name} ${JSON.stringify(job.data)}`)
}

/** Clients of the world's Redis, except the world itself. */
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
    // It ended while we looked.
    return ''
  }
}
