/** A past: rows of an installation that has been running for two years, without a pod left of them. */
import { encodeTime } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'

export interface History {
  /** Sandboxes in all; as many commands and Idempotency-Keys, and an account for every hundred. */
  sandboxes: number
  /** The account that a hundredth of them belongs to. */
  accountId: string
}

/** What may grow with the use of an installation. */
export const growingTables = [
  'account',
  'api_key',
  'sandbox',
  'exec',
  'idempotency_key',
  'secret',
  'command_refusal',
]

/** The id of one of the accounts that the rest belongs to. */
export const pastAccount = (number: number) => `acc_past_${number}`

/** Sandboxes in one statement, so that none takes longer than a query may. */
const atOnce = 20_000

/** Adds what is missing to the rows of an earlier call. @param from sandboxes that are there already */
export async function fillHistory(
  db: Pick<Queries, 'query'>,
  { sandboxes, accountId }: History,
  from = 0,
): Promise<void> {
  const accounts = accountsOf(sandboxes)
  await fillAccounts(db, from === 0 ? 0 : accountsOf(from), accounts)
  for (let first = from; first < sandboxes; first += atOnce) {
    await fillSandboxes(db, accountId, accounts, first, Math.min(first + atOnce, sandboxes) - 1)
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
  // Spread evenly over two years, each an hour long; ids sort as they would, before all of today.
  await db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, expires_at, destroyed_at, destroy_reason, reaped_at)
     select 'sbx_' || lpad(n::text, 26, '0'), case when n % 100 = 0 then ? else 'acc_past_' || n % ? end, 'past', 'sbx-' || gen_random_uuid(),
            at, at, at + interval '1 hour', at + interval '1 hour', 'expired', at + interval '1 hour'
       from (select n, sandlot_now() - interval '1 day' - random() * interval '730 days' as at ${numbers}) as past`,
    [accountId, accounts, first, last],
  )
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, idempotency_key, sealed_command, background, tty, status, started_at)
     select 'exec_' || ? || lpad(n::text, 16, '0'), 'sbx_' || lpad(n::text, 26, '0'), 'wrk_past', n, '\\x00', false, false,
            'exited', sandlot_now() ${numbers}`,
    // Of yesterday: those of a month ago are forgotten.
    [encodeTime(Date.now() - 24 * 60 * 60 * 1000).toLowerCase(), first, last],
  )
  // As old as they get before the sweep forgets them.
  await db.query(
    `insert into idempotency_key (account_id, key, request_hash, sandbox_id, created_at)
     select 'acc_past_' || n % ?, n, '\\x00', 'sbx_' || lpad(n::text, 26, '0'),
            sandlot_now() - random() * interval '40 hours' ${numbers}`,
    [accounts, first, last],
  )
}
