/** Compares Sandlot's jobs to BullMQ jobs that do nothing, in alternating rounds. */
import { Queue } from 'bullmq'
import { pino } from 'pino'
import { newSandboxId } from '../shared/data/ids.ts'
import { openQueue } from '../shared/platform/jobs.ts'
import { connectRedis } from '../shared/platform/redis.ts'
import { type Part, timed } from './part.ts'
import { startStack } from './stack.ts'

const jobsEach = 3_000
const rounds = 8

export const jobs: Part = {
  title: 'Jobs, compared with bare BullMQ',
  needsCluster: false,
  async measure() {
    await using stack = await startStack({ SANDBOX_DRIVER: 'local' })
    await stack.start('bench/bare-bullmq.ts', ['working'])
    const redis = connectRedis(stack.services.redisUrl, 'fail-fast', pino({ level: 'silent' }))
    await new Promise((resolve) => redis.once('ready', resolve))
    const ours = openQueue(redis)
    const bare = new Queue('bare', { connection: redis, defaultJobOptions: { removeOnComplete: true } })
    // The sandbox does not exist, so the job only looks up a row.
    const addOurs = () => ours.add('deletePod', { sandboxId: newSandboxId(), requestId: '' })
    const addBare = () => bare.add('nothing', { sandboxId: newSandboxId(), requestId: '' })
    const leftOurs = async () => {
      const { wait = 0, active = 0, failed = 0 } = await ours.depth()
      if (failed > 0) throw new Error('a job failed')
      return wait + active
    }
    const leftBare = () => bare.getJobCountByTypes('wait', 'active')
    const rates = { ours: [] as number[], bare: [] as number[] }
    for (let round = 0; round <= rounds; round++) {
      const oursMs = await timed(() => runAll(addOurs, leftOurs))
      const bareMs = await timed(() => runAll(addBare, leftBare))
      // The first round is a warm-up.
      if (round === 0) continue
      rates.ours.push((jobsEach / oursMs) * 1000)
      rates.bare.push((jobsEach / bareMs) * 1000)
    }
    await ours.close()
    await bare.close()
    redis.disconnect()
    return {
      rows: [
        { what: 'bare BullMQ, jobs that do nothing', ours: false, unit: 'per second', values: rates.bare },
        { what: 'Sandlot, jobs that look up their row', ours: true, unit: 'per second', values: rates.ours },
      ],
      notes: [
        `${jobsEach} jobs per round, added individually and executed by one worker process, 64 concurrently, in rounds that alternate between the two rows; measured from the first addition to the last completion.`,
      ],
    }
  },
}

async function runAll(add: () => Promise<unknown>, left: () => Promise<number>): Promise<void> {
  await Promise.all(Array.from({ length: jobsEach }, add))
  while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 2))
}
