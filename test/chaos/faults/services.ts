/** PostgreSQL and Redis: killed, frozen, emptied, filled. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Plan } from './plan.ts'

export const serviceFaults = {
  'connections of PostgreSQL are terminated': ({ stage: { world } }, { chance }) => ({
    target: 'postgres',
    // Ours may be among them, and then the answer is lost.
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
  'PostgreSQL is frozen': ({ stage: { world }, ledger }, { lastsMs }) => ({
    target: 'postgres',
    async act() {
      const from = Date.now()
      world.plugs.postgres!.freeze()
      await sleep(lastsMs)
      await world.plugs.postgres!.start()
      ledger.standstills.push({ from, to: Date.now() })
    },
  }),
  'PostgreSQL is killed': ({ stage: { world }, ledger }, { lastsMs }) => ({
    target: 'postgres',
    async act() {
      ledger.crashes.push(Date.now())
      await world.plugs.postgres!.kill()
      await sleep(lastsMs)
      await world.plugs.postgres!.start()
    },
  }),
  'Redis is flushed': ({ stage: { world } }) => ({ target: 'redis', act: () => world.redis.flushall() }),
  'Redis is full': ({ stage: { world } }, { lastsMs, chance }) => ({
    target: 'redis',
    async act() {
      await limitMemory(world.redis, chance * 64 * 1024)
      await sleep(lastsMs)
      await world.redis.config('SET', 'maxmemory', '0')
    },
  }),
  'Redis is frozen': ({ stage: { world } }, { lastsMs }) => ({
    target: 'redis',
    async act() {
      world.plugs.redis.freeze()
      await sleep(lastsMs)
      await world.plugs.redis.start()
    },
  }),
  'Redis is killed': ({ stage: { world } }, { lastsMs }) => ({
    target: 'redis',
    async act() {
      await world.plugs.redis.kill()
      await sleep(lastsMs)
      await world.plugs.redis.start()
    },
  }),
} satisfies Record<string, Plan>

/** Leaves it so many bytes. */
async function limitMemory(redis: Redis, bytes: number) {
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
  await redis.config('SET', 'maxmemory', String(Math.round(used + bytes)))
}
