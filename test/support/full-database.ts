/** A PostgreSQL without space, as far as a client can see: what would need some is refused with its code, 53100. */
import type { Database } from '../../shared/data/database.ts'

const growing = ['account', 'api_key', 'sandbox', 'exec', 'idempotency_key', 'warm_pod', 'secret']

/** Lays what can refuse. Afterwards no lock of a table is needed to begin or to end. */
export async function layRefusal(db: Database): Promise<void> {
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
