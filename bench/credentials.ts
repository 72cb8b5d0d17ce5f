/**
 * Measures the CPU time of authentication and rate limiting per request, compared with a round trip to Redis.
 */
import type { RedisCommander } from 'ioredis'
import { type App, openApp } from '../api/app.ts'
import { makeApiKey, rememberMs } from '../api/auth/api-keys.ts'
import { authenticate } from '../api/auth/authenticate.ts'
import { openContext } from '../shared/platform/context.ts'
import { readSettings } from '../shared/platform/settings.ts'
import { median } from './figures.ts'
import type { Part, Row } from './part.ts'
import { startServices } from './services.ts'

const requests = 10_000
const rounds = 20
const inFlight = [1, 8, 32]
const maxUs = 30
/** Minimum requests in flight for the verdict. With fewer, wake-ups between responses dominate the cost. */
const busy = 8

export const credentials: Part = {
  title: 'API key and token bucket',
  needsCluster: false,
  async measure() {
    await using services = await startServices()
    const settings = readSettings({
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      JWT_SECRET: 'x'.repeat(32),
      SECRETS_KEY: 'x'.repeat(32),
      RATE_SANDBOX_OPS_PER_MINUTE: '100000000',
      LOG_LEVEL: 'silent',
    })
    await using context = Object.assign(openContext('api', settings), {
      [Symbol.asyncDispose]: () => context.close(),
    })
    await new Promise((resolve) => context.redis.once('ready', resolve))
    const app = openApp(context)
    const { raw, hash, lastFour } = makeApiKey()
    await context.db.query(`insert into account (id, email, password_hash) values ('acc', 'a', '\\x00')`)
    await context.db.query(
      `insert into api_key (id, account_id, hash, last_four) values ('key', 'acc', ?, ?)`,
      [hash, lastFour],
    )
    const pass = () => enter(app, `Bearer ${raw}`)
    const ping = async () => void (await context.redis.ping())
    const rows: (Row & { inFlight: number })[] = []
    const trips: number[] = []
    for (const count of inFlight) {
      const ours: number[] = []
      const bare: number[] = []
      await many(count, requests, pass)
      await many(count, requests, ping)
      for (let round = 0; round < rounds; round++) {
        const before = await scriptsRun(context.redis)
        ours.push(await costOf(count, pass))
        trips.push(((await scriptsRun(context.redis)) - before) / requests)
        bare.push(await costOf(count, ping))
      }
      const unit = 'µs of CPU'
      rows.push({
        what: `bare \`PING\`, ${count} in flight`,
        ours: false,
        unit,
        values: bare,
        inFlight: count,
      })
      rows.push({
        what: `key and bucket, ${count} in flight`,
        ours: true,
        unit,
        values: ours,
        inFlight: count,
      })
    }
    await app.apiKeys.close()
    app.workers.close()
    const counted = rows.filter((row) => row.ours && row.inFlight >= busy)
    const worst = Math.max(...counted.map(({ values }) => median(values)))
    return {
      rows: rows.map(({ inFlight: _, ...row }) => row),
      verdicts: [
        {
          what: `at most ${maxUs} µs of CPU per request with ${busy} or more in flight: ${worst.toFixed(1)}`,
          met: worst <= maxUs,
        },
        { what: `one round trip to Redis: ${median(trips)}`, met: trips.every((trip) => trip === 1) },
      ],
      notes: [
        `User and system time of the API's code for one key over ${requests} requests per round, including a lookup of the key in PostgreSQL every ${rememberMs} ms. The \`PING\` rows show the cost of any round trip to Redis for this process, measured alternately: with one in flight, nearly all of it is the cost of waking up for the reply.`,
      ],
    }
  },
}

/** Runs the steps of `api/http/route.ts` that precede validation. */
async function enter(app: App, header: string): Promise<void> {
  const { id, overrides } = await authenticate(app, 'key', header, () => '127.0.0.1')
  await app.buckets.take('sandbox_ops', id, overrides.sandbox_ops)
}

/** Returns average user and system time per call, in microseconds. */
async function costOf(count: number, work: () => Promise<void>): Promise<number> {
  const started = process.cpuUsage()
  await many(count, requests, work)
  const { user, system } = process.cpuUsage(started)
  return (user + system) / requests
}

async function many(inFlight: number, count: number, work: () => Promise<void>): Promise<void> {
  let left = count
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await work()
    }),
  )
}

/** Returns the number of scripts that Redis has run. */
async function scriptsRun(redis: RedisCommander): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}
