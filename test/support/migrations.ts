/** Databases as earlier versions left them, for the migrations to come. */
import type { Database } from '../../shared/data/database.ts'

/** Statements that take back as much of a migration as the code of today can do without. */
const undo = {
  '20261125_past': `
    drop trigger if exists sandbox_forgets on sandbox;
    drop function if exists forget_env_of_sandbox;
    drop index if exists sandbox_metadata`,
  '20261123_lost': 'drop index if exists exec_left',
  '20261121_growth': `
    drop index if exists idempotency_key_by_sandbox;
    drop index if exists api_key_of_account;
    drop index if exists sandbox_active;
    create index sandbox_active on sandbox (account_id) where destroyed_at is null`,
}

export async function forgetMigrations(db: Database, names: (keyof typeof undo)[]): Promise<void> {
  for (const name of names) {
    await db.transaction(async (db) => {
      await db.query(undo[name])
      await db.query('delete from mikro_orm_migrations where name = ?', [name])
    })
  }
}
