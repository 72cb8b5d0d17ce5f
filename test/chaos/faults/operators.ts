/** Actions of operators and other programs: locks, limits, key rotations, failovers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { changeLimits } from '../../../api/admin/limits.ts'
import { migrate } from '../../../migrations/migrate.ts'
import type { Database, Queries } from '../../../shared/data/database.ts'
import { waitFor } from '../../support/eventually.ts'
import { cleanup, forgetMigrations, growth, listWithOnline } from '../../support/migrations.ts'
import { chosen, during, type Plan, type Scene } from './plan.ts'

const tables = ['account', 'api_key', 'sandbox', 'exec', 'warm_pod'] as const
const undoMs = 60_000
const migrateMs = 180_000

/**
 * Whether other faults can cause the error: they may break the connection that holds the lock, or hold the
 * lock themselves.
 */
const isBroken = (error: unknown) => !/syntax|does not exist|permission/.test(String(error))

const hold =
  (lock: (db: Queries, chance: number) => Promise<unknown>): Plan =>
  ({ stage: { world } }, { chance, lastsMs }) => ({
    target: 'locks',
    act: () =>
      world.db
        .transaction(async (db) => {
          await lock(db, chance)
          await sleep(lastsMs)
        })
        .catch((error) => {
          if (!isBroken(error)) throw error
        }),
  })

/** Retries an action, because other faults can make PostgreSQL unavailable or read-only. */
const untilDone = (act: () => Promise<unknown>, withinMs = undoMs) =>
  waitFor(() => act().then(() => true), withinMs)

function setReadOnly(value: 'on' | 'off') {
  return ({ stage: { world } }: Scene) =>
    untilDone(async () => {
      await world.db.query(`alter system set default_transaction_read_only = ${value}`)
      await world.db.query('select pg_reload_conf()')
    })
}

export const operatorFaults = {
  'another session locks a row': hold((db, chance) =>
    db.query(
      'select from account order by id offset floor(?::float8 * (select count(*) from account)) limit 1 for update',
      [chance],
    ),
  ),
  'another session locks a table': hold((db, chance) =>
    db.query(`lock table ${chosen(tables, chance)} in access exclusive mode`),
  ),
  'a limit is lowered': ({ stage: { world } }, { target, chance, lastsMs }) => ({
    target: 'limits',
    async act() {
      const accounts = await idsOf(world.db).catch(() => [])
      const account = chosen(accounts, target)
      if (account === undefined) return
      const lower = chance < 0.5 ? { concurrent: 1 } : { 'sandbox-ops': 30 }
      await changeLimits(world.db, account, lower).catch(() => {})
      await sleep(lastsMs)
      await untilDone(() => changeLimits(world.db, account, { concurrent: null, 'sandbox-ops': null }))
    },
  }),
  'PostgreSQL is read-only': during('postgres', setReadOnly('on'), setReadOnly('off')),
  'PostgreSQL fails over': ({ stage }, { chance, lastsMs }) => ({
    target: 'postgres',
    async act() {
      const { postgresPair: pair, leadPostgres } = stage
      // The address moves immediately or late. A late move leaves clients at the demoted server.
      for (const server of [pair.second, pair.first]) {
        await pair.switchTo(server, chance < 0.5 ? () => leadPostgres(server) : undefined)
        await sleep(lastsMs / 2)
        leadPostgres(server)
        await sleep(lastsMs / 2)
      }
    },
  }),
  'large tables are migrated': ({ stage: { world } }) => ({
    target: 'migrations',
    async act() {
      const run = () => migrate(world.settings.databaseUrl, { list: listWithOnline })
      await untilDone(() => forgetMigrations(world.db, [cleanup, growth]), migrateMs)
      // Other faults may interrupt the migration. An operator would run it again.
      await untilDone(run, migrateMs)
    },
  }),
  'Redis fails over': ({ stage }, { chance, lastsMs }) => ({
    target: 'redis',
    async act() {
      const { first, second } = stage.redisPair
      await second.follow(first)
      const moves = [() => first.follow(second), async () => stage.leadRedis(second)]
      await second.promote()
      for (const move of chance < 0.5 ? moves : moves.toReversed()) await move()
      await sleep(lastsMs)
      await first.promote()
      stage.leadRedis(first)
      await second.follow(first)
    },
  }),
  'a process gets other keys': ({ stage }, { target }) => {
    const instance = chosen(stage.withOldestKeys(), target)
    return (
      instance && {
        target: instance.name,
        async act() {
          // An earlier fault may have rotated these keys already.
          if (!stage.withOldestKeys().includes(instance)) return
          instance.isBeingEnded = true
          await instance.process.stop().catch(() => {})
          await instance.process.kill()
          stage.rotateKeys(instance)
          await stage.replace(instance)
        },
      }
    )
  },
} satisfies Record<string, Plan>

const idsOf = async (db: Database): Promise<string[]> =>
  (await db.query<{ id: string }>('select id from account order by id')).map(({ id }) => id)
