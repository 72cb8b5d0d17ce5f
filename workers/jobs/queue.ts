import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { type JobName, type Jobs, queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { logRepeatable } from '../../shared/platform/log.ts'
import { assignPod } from '../pods/claimed-pod.ts'
import { createPod } from '../pods/create-pod.ts'
import { type ExpiryContext, expireSandbox, reapPod } from '../pods/end-sandbox.ts'

/** Handles a job. Reads the sandbox's row first, so that jobs can safely run twice, late or concurrently. */
type Processor = (worker: ExpiryContext, sandboxId: string) => Promise<unknown>

const processors: Record<JobName, Processor> = {
  createPod,
  assignPod,
  deletePod: reapPod,
  expire: expireSandbox,
}

const maxConcurrentJobs = 64

/** How long the job loop blocks on Redis at a time, so that it notices when Redis is unavailable. */
const blockSeconds = 1

/** Time without a heartbeat after which another worker takes over a job. */
const lockMs = 10_000
const checkIntervalMs = 1_000

class Loop extends Worker {
  override get maximumBlockTimeout() {
    return blockSeconds
  }
}

/**
 * Starts processing jobs.
 * @param connection a Redis client that retries without limit, as BullMQ's loops require
 */
export function takeJobs(worker: ExpiryContext, connection: Redis): Worker {
  const queue = new Loop(queueName, (job) => doJob(worker, job), {
    connection,
    prefix: queuePrefix,
    concurrency: maxConcurrentJobs,
    drainDelay: blockSeconds,
    lockDuration: lockMs,
    stalledInterval: 5_000,
  })
  queue.on('error', (error) => worker.log.debug({ err: error }, 'the job queue reported an error'))
  return queue
}

/**
 * Waits until the running jobs have finished. Stops waiting if Redis is unavailable for `lockMs`, because
 * other workers then take over these jobs.
 */
export async function finishJobs(queue: Worker, connection: Redis): Promise<void> {
  const finished = queue.close().then(() => true)
  let unavailableMs = 0
  while (unavailableMs < lockMs && !(await Promise.race([finished, sleep(checkIntervalMs, false)])))
    unavailableMs = connection.status === 'ready' ? 0 : unavailableMs + checkIntervalMs
}

async function doJob(worker: ExpiryContext, job: Job): Promise<void> {
  const name = job.name as JobName
  const args = job.data as Jobs[JobName] & { requestId?: string }
  if (!Object.hasOwn(processors, name)) {
    throw new UnrecoverableError(`unknown job ${name}; this worker is older than the API`)
  }
  // Redis is not trusted: a job contains only a name and an ID, and the row determines the action.
  if (typeof args?.sandboxId !== 'string') throw new UnrecoverableError('the job has no sandbox id')
  // The processors log the sandbox ID.
  const log = worker.log.child({ job: name, request_id: args.requestId })
  const ids = { sandbox_id: args.sandboxId }
  const started = performance.now()
  const finish = (outcome: 'done' | 'failed') =>
    worker.metrics.jobs.observe({ job: name, outcome }, (performance.now() - started) / 1000)
  try {
    await processors[name]({ ...worker, log }, args.sandboxId)
    finish('done')
    log.debug({ ...ids, ms: Math.round(performance.now() - started) }, 'a job is done')
  } catch (error) {
    finish('failed')
    logRepeatable(log, 'warn', { ...ids, err: error, attempt: job.attemptsMade + 1 }, 'a job failed')
    throw error
  }
}
