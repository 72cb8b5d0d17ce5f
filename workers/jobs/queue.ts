/** Processes jobs of the queue. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { type JobName, type Jobs, queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { assignPod } from '../pods/claimed-pod.ts'
import { createPod } from '../pods/create-pod.ts'
import { reapPod } from '../pods/destroy-and-delete-pod.ts'
import { type ExpiryContext, expireSandbox } from '../pods/expire.ts'

/**
 * Does one job. Safe to run twice, late, or beside itself: it reads its row first. The log of the worker that it is
 * given names the request.
 */
type Processor = (worker: ExpiryContext, sandboxId: string) => Promise<void>

const processors: Record<JobName, Processor> = {
  createPod,
  assignPod,
  deletePod: reapPod,
  expire: expireSandbox,
}

/** Jobs at the same time. They mostly wait for the cluster. */
const atOnce = 64

/** Seconds that the loop blocks at most, so that an unavailable Redis is noticed. */
const blockSeconds = 1

/** Milliseconds without a heartbeat after which another worker takes over a job. */
const lockMs = 10_000
const lookEveryMs = 1_000

class Loop extends Worker {
  override get maximumBlockTimeout() {
    return blockSeconds
  }
}

/** @param connection a patient one, as BullMQ's loops need */
export function takeJobs(worker: ExpiryContext, connection: Redis): Worker {
  const queue = new Loop(queueName, (job) => doJob(worker, job), {
    connection,
    prefix: queuePrefix,
    concurrency: atOnce,
    drainDelay: blockSeconds,
    lockDuration: lockMs,
    stalledInterval: 5_000,
  })
  queue.on('error', (error) => worker.log.debug({ err: error }, 'the queue reports an error'))
  return queue
}

/**
 * Takes no new job. Resolves when those that run are done, or when Redis has been away for so long that other workers take
 * them up: BullMQ alone waits for Redis for ever.
 */
export async function finishJobs(queue: Worker, connection: Redis): Promise<void> {
  const finished = queue.close().then(() => true)
  let awayMs = 0
  while (awayMs < lockMs && !(await Promise.race([finished, sleep(lookEveryMs, false)])))
    awayMs = connection.status === 'ready' ? 0 : awayMs + lookEveryMs
}

async function doJob(worker: ExpiryContext, job: Job): Promise<void> {
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
