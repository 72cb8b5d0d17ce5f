/** Changes a world's clock, which is kept in its database, and the clock of its Redis. */
import type { Redis } from 'ioredis'
import type { Database } from '../../shared/data/database.ts'

/** Simulates a clock step in Redis by shifting all stored times: TTLs, token buckets and worker leases. */
export async function moveClockOfRedis(redis: Redis, byMs: number): Promise<void> {
  await redis.eval(moveScript, 0, Math.round(byMs))
}

const moveScript = `
  local by = tonumber(ARGV[1])
  local function at(text, units)
    return string.format('%.0f', tonumber(text) - by * units)
  end
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if string.sub(key, 1, 15) == 'sandlot:bucket:' then
      local missing, us = string.match(redis.call('GET', key), '^(%S+) (%S+)$')
      redis.call('SET', key, missing .. ' ' .. at(us, 1000), 'KEEPTTL')
    elseif key == 'sandlot:workers' then
      local all = redis.call('HGETALL', key)
      for i = 1, #all, 2 do
        local ms, rest = string.match(all[i + 1], '^(%S+) (.*)$')
        redis.call('HSET', key, all[i], at(ms, 1) .. ' ' .. rest)
      end
    end
    if left > by then redis.call('PEXPIRE', key, left - by)
    elseif left >= 0 then redis.call('DEL', key) end
  end`

/** Sets the clock, and stops it unless `running` is true. */
export async function setClock(db: Database, at: Date, { running = false } = {}): Promise<void> {
  await db.query('create table if not exists test_clock (at timestamptz, shift interval not null)')
  await db.transaction(async (db) => {
    await db.query('delete from test_clock')
    await db.query(
      `insert into test_clock
       select case when ? then null else ?::timestamptz end,
              case when ? then ?::timestamptz - clock_timestamp() else interval '0' end`,
      [running, at, running, at],
    )
    await db.query(
      `create or replace function sandlot_now() returns timestamptz(3) language sql volatile
       as $$ select (coalesce(at, clock_timestamp()) + shift)::timestamptz(3) from test_clock $$`,
    )
  })
}

/** Moves the clock by a positive or negative time. A stopped clock stays stopped. */
export async function moveClock(db: Database, byMs: number): Promise<void> {
  const [table] = await db.query<{ is: boolean }>("select to_regclass('test_clock') is not null as is")
  if (!table!.is) await setClock(db, new Date(), { running: true })
  await db.query(`update test_clock set shift = shift + ? * interval '1 millisecond'`, [byMs])
}

/** Resumes a stopped clock. Does nothing if the clock was never changed. */
export async function letClockRun(db: Database): Promise<void> {
  const [row] = await db.query<{ moved: boolean; now: string }>(
    "select to_regclass('test_clock') is not null as moved, sandlot_now() as now",
  )
  if (row!.moved) await setClock(db, new Date(row!.now), { running: true })
}
