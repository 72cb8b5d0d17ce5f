/** Takes jobs off the queue and gives each to its processor. */
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { readClock } from '../../shared/data/clock.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import { type JobName, type Jobs, queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { assignPod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { createPod } from '../pods/create-pod.ts'
import { endAndDelete, reapPod } from '../pods/end-and-delete.ts'

/** An early `expire` adds itself again. */
type JobsContext = PodsContext & Pick<Context, 'jobs'>

/**
 * Does one job. Safe to run twice, late, or beside itself: it reads its row first. The log of the worker that it is
 * given names the request.
 */
type Processor = (worker: JobsContext, sandboxId: string) => Promise<void>

const processors: Record<JobName, Processor> = { createPod, assignPod, deletePod: reapPod, expire }

/** Jobs at a time. They wait for the cluster more than they compute. */
const atOnce = 64

/** Seconds that the loop blocks at most: Redis must answer often enough to be told from one that is silent. */
const blockSeconds = 1

class Loop extends Worker {
  override get maximumBlockTimeout() {
    return blockSeconds
  }
}

/** @param connection a patient one, which waits for a Redis that is away, as BullMQ's loops need */
export function takeJobs(worker: JobsContext, connection: Redis): Worker {
  const queue = new Loop(queueName, (job) => doJob(worker, job), {
    connection,
    prefix: queuePrefix,
    concurrency: atOnce,
    drainDelay: blockSeconds,
    // Another worker takes up the jobs of a dead one after this; the sweep is as quick.
    lockDuration: 10_000,
    stalledInterval: 5_000,
  })
  queue.on('error', (error) => worker.log.debug({ err: error }, 'the queue reports an error'))
  return queue
}

async function doJob(worker: JobsContext, job: Job): Promise<void> {
  const name = job.name as JobName
  const args = job.data as Jobs[JobName] & { requestId?: string }
  if (!Object.hasOwn(processors, name)) {
    throw new UnrecoverableError(`this worker knows no job ${name}: it is older than the API`)
  }
  // Redis is not trusted: a job is a kind and an id, and the row decides what is done.
  if (typeof args?.sandboxId !== 'string') throw new UnrecoverableError('a job without the id of a sandbox')
  const log = worker.log.child({ job: name, sandbox_id: args.sandboxId, request_id: args.requestId })
  const started = performance.now()
  const finish = (outcome: 'done' | 'failed') =>
    worker.metrics.jobs.observe({ job: name, outcome }, (performance.now() - started) / 1000)
  try {
    await processors[name]({ ...worker, log }, args.sandboxId)
    finish('done')
    log.debug({ ms: Math.round(performance.now() - started) }, 'a job is done')
  } catch (error) {
    finish('failed')
    log.warn({ err: error, attempt: job.attemptsMade + 1 }, 'a job failed')
    throw error
  }
}

async function expire(worker: JobsContext, sandboxId: string): Promise<void> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // Redis' clock may run ahead of PostgreSQL's, and only PostgreSQL's counts.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  await endAndDelete(worker, sandboxId, 'expired', null, 'expire: the row is ended, the pod lives')
}
