/** Time travel: the one clock of the system, in the database of one world. */
import type { Database } from '../../shared/data/database.ts'

/**
 * Stops the clock at a moment, or lets it run from there.
 * @param at the moment that is now
 */
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

/** Lets a clock that was stopped run on from where it stands; the real one is left as it is. */
export async function letClockRun(db: Database): Promise<void> {
  const [row] = await db.query<{ moved: boolean; now: string }>(
    "select to_regclass('test_clock') is not null as moved, sandlot_now() as now",
  )
  if (row!.moved) await setClock(db, new Date(row!.now), { running: true })
}
