/** Databases as earlier versions left them, for the migrations to come. */
import { encodeTime } from 'ulid'
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

/** Adds sandboxes that have ended, and as many commands, of one account. */
export async function fillTables(db: Database, email: string, rows: number): Promise<void> {
  // The sweep forgets what is old, and tells it by the id.
  const now = encodeTime(Date.now()).toLowerCase()
  await db.query(
    `insert into sandbox (id, account_id, image, created_at, expires_at, ready_at, destroyed_at, destroy_reason,
                          reaped_at, sealed_env, metadata, pod_name)
     select 'sbx_${now}' || lpad(n::text, 16, '0'), account.id, 'any', now(), now() + interval '1 hour', now(), now(),
            'requested', now(), 'sealed', '{"of": "a crowd"}', n::text
       from account, generate_series(1, ?::int) as n where email = ?`,
    [rows, email],
  )
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, sealed_command, background, tty, status, started_at)
     select 'exec_${now}' || lpad(n::text, 16, '0'), 'sbx_${now}' || lpad(n::text, 16, '0'), 'wrk', '', false, false, 'exited', now()
       from generate_series(1, ?::int) as n`,
    [rows],
  )
  await db.query('analyze')
}
