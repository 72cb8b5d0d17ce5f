/** Online migrations of large tables. They recreate parts of the first version's schema. */
import { encodeTime } from 'ulid'
import { migrationsList } from '../../migrations/list.ts'
import { Online } from '../../migrations/online.ts'
import type { Database } from '../../shared/data/database.ts'

class Past extends Online {
  override async up(): Promise<void> {
    await this.change(
      `create or replace trigger sandbox_forgets before update of destroyed_at on sandbox for each row
         when (new.destroyed_at is not null and new.sealed_env is not null)
         execute function forget_env_of_sandbox()`,
    )
    await this.fill('sandbox', 'sealed_env = null', 'destroyed_at is not null and sealed_env is not null')
    await this.index('sandbox_metadata', `on sandbox (id) where metadata <> '{}'`)
  }
}

class Growth extends Online {
  override async up(): Promise<void> {
    await this.replaceIndex('sandbox_active', 'on sandbox (account_id, id desc) where destroyed_at is null')
    await this.index('exec_left', 'on exec (worker_id) where is_left')
    await this.constrain('sandbox', 'sandbox_times', 'check (created_at < expires_at)')
  }
}

export const cleanup = '20990101_past'
export const growth = '20990102_growth'
export const listWithOnline = [
  ...migrationsList,
  { name: cleanup, class: Past, description: 'deletes environments of sandboxes that have ended' },
  { name: growth, class: Growth, description: 'replaces indexes' },
]

/** Statements that undo migrations as far as the code works without them. */
const undo = {
  [cleanup]: 'drop trigger if exists sandbox_forgets on sandbox; drop index if exists sandbox_metadata',
  [growth]: `
    drop index if exists exec_left;
    drop index if exists sandbox_active;
    create index sandbox_active on sandbox (account_id) where destroyed_at is null;
    alter table sandbox drop constraint if exists sandbox_times`,
}

export async function forgetMigrations(db: Database, names: (keyof typeof undo)[]): Promise<void> {
  for (const name of names) {
    await db.transaction(async (db) => {
      await db.query(undo[name])
      await db.query('delete from mikro_orm_migrations where name = ?', [name])
    })
  }
}

/** Adds ended sandboxes of one account, and as many commands. */
export async function fillTables(db: Database, email: string, rows: number): Promise<void> {
  // Current ids, because the reconciler deletes commands with old ids.
  const now = encodeTime(Date.now()).toLowerCase()
  await db.query(
    `insert into sandbox (id, account_id, image, created_at, expires_at, max_expires_at, ready_at, destroyed_at, destroy_reason,
                          reaped_at, sealed_env, metadata, pod_name)
     select 'sbx_${now}' || lpad(n::text, 16, '0'), account.id, 'any', now(), now() + interval '1 hour', now() + interval '1 hour', now(), now(),
            'requested', now(), 'sealed', '{"of": "many"}', n::text
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
