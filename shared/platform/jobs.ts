/**
 * Jobs for the workers. Rows in PostgreSQL are authoritative, so a job may run twice, late or never. BullMQ
 * generates the job IDs: with a fixed ID, a new job would be ignored while an earlier job with this ID is
 * retained.
 */
import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { unavailable } from './problem.ts'

export interface Jobs {
  createPod: { sandboxId: string; requestId: string }
  /** Labels a claimed warm pod and sets its deadline. */
  assignPod: { sandboxId: string; requestId: string }
  deletePod: { sandboxId: string; requestId: string }
  expire: { sandboxId: string }
}
export type JobName = keyof Jobs

export const queueName = 'lifecycle'
export const queuePrefix = 'sandlot'

const options: JobsOptions = {
  attempts: 4,
  backoff: { type: 'exponential', delay: 500 },
  removeOnComplete: true,
  removeOnFail: { count: 1_000, age: 86_400 },
}

interface JobQueue {
  add<N extends JobName>(name: N, args: Jobs[N], delayMs?: number): Promise<void>
  depth(): Promise<Record<string, number>>
  close(): Promise<void>
}

/** @param redis a connection in `fail-fast` mode, so that all methods fail immediately in an outage */
export function openQueue(redis: Redis): JobQueue {
  let opening: Promise<Queue> | undefined
  // Opens the queue on first use, and again after a failure. BullMQ queries the Redis version only once, and
  // the queue stays unusable if this query fails.
  const open = async () => {
    if (!opening && redis.status !== 'ready') throw unavailable('Redis is unavailable. Try again.')
    opening ??= openReady(redis).catch((error) => {
      opening = undefined
      throw error
    })
    return await opening
  }
  return {
    async add(name, args, delayMs) {
      const queue = await open()
      await queue.add(name, args, delayMs === undefined ? {} : { delay: Math.max(0, Math.ceil(delayMs)) })
    },
    depth: async () => await (await open()).getJobCounts('wait', 'active', 'delayed', 'failed'),
    close: async () => await (await opening)?.close(),
  }
}

async function openReady(redis: Redis): Promise<Queue> {
  const queue = new Queue(queueName, {
    connection: redis,
    prefix: queuePrefix,
    defaultJobOptions: options,
  })
  // The connection logs its own outages. Without a listener, an error would crash the process.
  queue.on('error', () => {})
  await queue.waitUntilReady()
  return queue
}
