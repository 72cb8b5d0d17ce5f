/** Inserts the rows of an installation that has run for two years. All sandboxes have ended. */
import { encodeTime } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'

export interface History {
  /** Number of sandboxes, of commands and of Idempotency-Keys. One account is added per hundred sandboxes. */
  sandboxes: number
  accountId: string
}

export const growingTables = [
  'account',
  'api_key',
  'sandbox',
  'sandbox_label',
  'exec',
  'idempotency_key',
  'secret',
  'command_refusal',
]

export const historyAccountId = (number: number) => `acc_past_${number}`

/** Sandboxes per statement. Larger statements could time out. */
const batchSize = 20_000

/** @param from number of sandboxes inserted by earlier calls */
export async function fillHistory(
  db: Pick<Queries, 'query'>,
  { sandboxes, accountId }: History,
  from = 0,
): Promise<void> {
  const accounts = accountsOf(sandboxes)
  await fillAccounts(db, from === 0 ? 0 : accountsOf(from), accounts)
  for (let first = from; first < sandboxes; first += batchSize) {
    await fillSandboxes(db, accountId, accounts, first, Math.min(first + batchSize, sandboxes) - 1)
  }
  for (const table of growingTables) await db.query(`analyze ${table}`)
}

const accountsOf = (sandboxes: number) => Math.max(1, Math.floor(sandboxes / 100))

async function fillAccounts(db: Pick<Queries, 'query'>, first: number, end: number) {
  const past = (sql: string) => db.query(`${sql} from generate_series(?::int, ?::int) as n`, [first, end - 1])
  await past(
    `insert into account (id, email, password_hash)
     select 'acc_past_' || n, n || '@past.example', '\\x00'`,
  )
  await past(
    `insert into api_key (id, account_id, hash, last_four)
     select 'key_past_' || n, 'acc_past_' || n, sha256(n::text::bytea), 'past'`,
  )
  await past(
    `insert into secret (id, account_id, name, sealed_value, bytes, created_at)
     select 'sec_past_' || n, 'acc_past_' || n, 'PAST', '\\x00', 1, sandlot_now()`,
  )
  await past(
    `insert into command_refusal (account_id, day, count)
     select 'acc_past_' || n, current_date - generate_series(0, 19), 1`,
  )
}

async function fillSandboxes(
  db: Pick<Queries, 'query'>,
  accountId: string,
  accounts: number,
  first: number,
  last: number,
) {
  const numbers = 'from generate_series(?::int, ?::int) as n'
  // One-hour sandboxes spread over two years. Their ids sort before today's ids.
  await db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, expires_at, max_expires_at, destroyed_at, destroy_reason, reaped_at)
     select 'sbx_' || lpad(n::text, 26, '0'), case when n % 100 = 0 then ? else 'acc_past_' || n % ? end, 'past', 'sbx-' || gen_random_uuid(),
            at, at, at + interval '1 hour', at + interval '1 hour', at + interval '1 hour', 'expired', at + interval '1 hour'
       from (select n, sandlot_now() - interval '1 day' - random() * interval '730 days' as at ${numbers}) as past`,
    [accountId, accounts, first, last],
  )
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, idempotency_key, sealed_command, background, tty, status, started_at)
     select 'exec_' || ? || lpad(n::text, 16, '0'), 'sbx_' || lpad(n::text, 26, '0'), 'wrk_past', n, '\\x00', false, false,
            'exited', sandlot_now() ${numbers}`,
    // Ids with yesterday's date, because the reconciler deletes commands that are a month old.
    [encodeTime(Date.now() - 24 * 60 * 60 * 1000).toLowerCase(), first, last],
  )
  // At most 40 hours old, so that the reconciler does not delete these rows.
  await db.query(
    `insert into idempotency_key (account_id, key, request_hash, sandbox_id, created_at)
     select 'acc_past_' || n % ?, n, '\\x00', 'sbx_' || lpad(n::text, 26, '0'),
            sandlot_now() - random() * interval '40 hours' ${numbers}`,
    [accounts, first, last],
  )
}
