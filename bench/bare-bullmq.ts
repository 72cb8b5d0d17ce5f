/** Baseline: a BullMQ worker whose jobs do nothing. */
import { Worker } from 'bullmq'
import { pino } from 'pino'
import { connectRedis } from '../shared/platform/redis.ts'

const connection = connectRedis(process.env.REDIS_URL!, 'retry', pino({ level: 'silent' }))
const worker = new Worker('bare', async () => {}, { connection, concurrency: 64 })
await worker.waitUntilReady()
console.log(JSON.stringify({ msg: 'working' }))
process.on('SIGTERM', () => process.exit(0))
