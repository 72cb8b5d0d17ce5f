/** Simulates a full PostgreSQL disk: writes fail with SQLSTATE 53100. */
import type { Database } from '../../shared/data/database.ts'

const growing = ['account', 'api_key', 'sandbox', 'exec', 'idempotency_key', 'warm_pod', 'secret']

/** Creates triggers, so that `setFull` needs no table locks. */
export async function installFullTriggers(db: Database): Promise<void> {
  await setFull(db, false)
  for (const table of growing) {
    await db.query(
      `create trigger test_full before insert or update on ${table} execute function test_refuse_for_space()`,
    )
  }
}

export async function setFull(db: Database, isFull: boolean): Promise<void> {
  const refuse = `raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'`
  await db.query(
    `create or replace function test_refuse_for_space() returns trigger language plpgsql
     as $$ begin ${isFull ? refuse : 'return null'}; end $$`,
  )
}
