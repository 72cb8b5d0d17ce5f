/**
 * Compares two ways to send a command to a worker: two-step HTTP and a BullMQ job with pub/sub.
 *   REDIS_URL=redis://localhost:6379 node bench/transport.ts
 */
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { Queue, Worker } from 'bullmq'
import { pino } from 'pino'
import { connectRedis } from '../shared/platform/redis.ts'
import { median, table } from './figures.ts'

const rounds = 400
const payloads = { 'a small command': 100, '1 MiB of stdin': 1024 * 1024 }

const redisUrl = process.env.REDIS_URL
if (!redisUrl) throw new Error('REDIS_URL is not set')
const log = pino({ level: 'silent' })

type Send = (text: string) => Promise<string>

async function overHttp(): Promise<{ send: Send; close(): void }> {
  const server = createServer()
  server.on('checkContinue', async (request, response) => {
    response.writeContinue()
    const { text } = (await json(request)) as { text: string }
    response.end(JSON.stringify({ text }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true })
  const send: Send = (text) =>
    new Promise((resolve, reject) => {
      const request = httpRequest({ port, agent, method: 'POST', headers: { expect: '100-continue' } })
      request.on('continue', () => request.end(JSON.stringify({ text })))
      request.on('error', reject)
      request.on('response', async (response) => resolve(((await json(response)) as { text: string }).text))
      request.flushHeaders()
    })
  return { send, close: () => server.close() }
}

async function overQueue(): Promise<{ send: Send; close(): Promise<void> }> {
  const [queueRedis, workerRedis, replyRedis, subscriber] = Array.from({ length: 4 }, () =>
    connectRedis(redisUrl!, 'retry', log),
  ) as [
    ReturnType<typeof connectRedis>,
    ReturnType<typeof connectRedis>,
    ReturnType<typeof connectRedis>,
    ReturnType<typeof connectRedis>,
  ]
  const queue = new Queue('bench-transport', { connection: queueRedis })
  const waiting = new Map<string, (text: string) => void>()
  await subscriber.subscribe('bench-replies')
  subscriber.on('message', (_channel, message: string) => {
    const { id, text } = JSON.parse(message) as { id: string; text: string }
    waiting.get(id)?.(text)
    waiting.delete(id)
  })
  const worker = new Worker(
    'bench-transport',
    async (job) => {
      await replyRedis.publish('bench-replies', JSON.stringify({ id: job.data.id, text: job.data.text }))
    },
    { connection: workerRedis, concurrency: 64 },
  )
  await worker.waitUntilReady()
  let next = 0
  const send: Send = (text) =>
    new Promise((resolve) => {
      const id = `r${next++}`
      waiting.set(id, resolve)
      void queue.add('call', { id, text }, { attempts: 1, removeOnComplete: true })
    })
  return {
    send,
    async close() {
      await worker.close()
      await queue.obliterate({ force: true })
      await queue.close()
      for (const redis of [queueRedis, workerRedis, replyRedis, subscriber]) redis.disconnect()
    },
  }
}

const [http, queue] = [await overHttp(), await overQueue()]
const rows: string[][] = []
for (const [what, bytes] of Object.entries(payloads)) {
  const text = 'x'.repeat(bytes)
  const count = bytes > 10_000 ? rounds / 10 : rounds
  const times: Record<'http' | 'queue', number[]> = { http: [], queue: [] }
  for (let round = 0; round < count + 20; round++) {
    for (const [name, { send }] of Object.entries({ http, queue })) {
      const started = performance.now()
      await send(text)
      // The first rounds are a warm-up.
      if (round >= 20) times[name as 'http' | 'queue'].push(performance.now() - started)
    }
  }
  rows.push([what, `${median(times.http).toFixed(2)} ms`, `${median(times.queue).toFixed(2)} ms`])
}
console.log(table(['there and back, median', 'HTTP', 'BullMQ job'], rows))
http.close()
await queue.close()
process.exit(0)
