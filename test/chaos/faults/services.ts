/** Faults that affect PostgreSQL and Redis: kills, freezes, lost data, full memory or disk, clock steps. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { moveClock, moveClockOfRedis } from '../../support/clock.ts'
import { waitFor } from '../../support/eventually.ts'
import { setFull } from '../../support/full-database.ts'
import { during, type Plan } from './plan.ts'

export const serviceFaults = {
  'connections of PostgreSQL are terminated': ({ stage: { world } }, { chance }) => ({
    target: 'postgres',
    // The fault may end the query's own connection.
    act: () =>
      world.db
        .query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid()
              and mod(abs(hashint4(pid)), 100) < ?`,
          [10 + chance * 90],
        )
        .catch(() => {}),
  }),
  'PostgreSQL is frozen': ({ stage: { world }, recorder }, { lastsMs }) => ({
    target: 'postgres',
    async act() {
      const from = Date.now()
      world.plugs.postgres!.freeze()
      await sleep(lastsMs)
      await world.plugs.postgres!.start()
      recorder.freezes.push({ from, to: Date.now() })
    },
  }),
  'PostgreSQL is killed': during(
    'postgres',
    ({ stage: { world }, recorder }) => {
      recorder.crashes.push(Date.now())
      return world.plugs.postgres!.kill()
    },
    ({ stage: { world } }) => world.plugs.postgres!.start(),
  ),
  'Redis is flushed': ({ stage: { world } }) => ({ target: 'redis', act: () => world.redis.flushall() }),
  'Redis is full': during(
    'redis',
    ({ stage: { world } }, { chance }) => limitMemory(world.redis, chance * 64 * 1024),
    ({ stage: { world } }) => world.redis.config('SET', 'maxmemory', '0'),
  ),
  'Redis is frozen': during(
    'redis',
    ({ stage }) => stage.world.plugs.redis.freeze(),
    ({ stage }) => stage.world.plugs.redis.start(),
  ),
  'Redis is killed': during(
    'redis',
    ({ stage }) => stage.world.plugs.redis.kill(),
    ({ stage }) => stage.world.plugs.redis.start(),
  ),
  "Redis' disk is full": ({ stage: { world } }, { lastsMs }) => ({
    target: 'redis',
    async act() {
      // Redis cannot replace a directory with its dump file.
      const obstacle = join(world.folder, 'redis', 'dump.rdb')
      rmSync(obstacle, { force: true, recursive: true })
      mkdirSync(obstacle)
      await world.redis.config('SET', 'save', '3600 1')
      const failed = async () => {
        // Another background save may be in progress.
        await world.redis.bgsave('SCHEDULE').catch(() => {})
        return (await world.redis.info('persistence')).includes('rdb_last_bgsave_status:err')
      }
      await waitFor(failed, failMs)
      await sleep(lastsMs)
      await world.redis.config('SET', 'save', '')
      rmSync(obstacle, { recursive: true })
    },
  }),
  "Redis' clock steps": ({ stage: { world } }, { chance }) => ({
    target: 'redis',
    act: () => moveClockOfRedis(world.redis, (chance * 2 - 1) * stepMs),
  }),
  'PostgreSQL has no space': during(
    'postgres',
    ({ stage: { world } }) => waitFor(() => setFull(world.db, true).then(() => true), failMs),
    ({ stage: { world } }) => waitFor(() => setFull(world.db, false).then(() => true), failMs),
  ),
  // Only forwards. After a step back, times in rows would show too many concurrent sandboxes.
  "PostgreSQL's clock leaps forward": ({ stage: { world } }, { chance }) => ({
    target: 'postgres',
    // Fails if another fault blocks writes to PostgreSQL.
    act: () => moveClock(world.db, Math.round(chance * leapMs)).catch(() => {}),
  }),
} satisfies Record<string, Plan>

/** Maximum step of Redis' clock. It exceeds the job lock and the liveness timeout of a worker. */
const stepMs = 60_000
/** Maximum step of PostgreSQL's clock. It is shorter than most TTLs. */
const leapMs = 20_000
const failMs = 30_000

/** Limits Redis to its current memory plus `bytes`. */
async function limitMemory(redis: Redis, bytes: number) {
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
  await redis.config('SET', 'maxmemory', String(Math.round(used + bytes)))
}
