/** Rows of sandboxes: within quota, ended for a reason that there was, billed exactly. */
import type { Queries } from '../../../shared/data/database.ts'
import type { Account } from '../../support/account.ts'
import type { Ledger } from '../ledger.ts'
import { cap } from '../stage.ts'

interface Row extends Record<string, unknown> {
  id: string
  account_id: string
  pod_name: string | null
  destroy_reason: string | null
  destroy_detail: string | null
  /** Milliseconds since 1970. */
  created: number
  ready: number | null
  expires: number
  destroyed: number | null
  /** Of its first pod, a warm one that died unused and was replaced. */
  first_ready: number | null
  first_ended: number | null
}

const columns = ['created', 'ready', 'expires', 'destroyed', 'first_ready', 'first_ended']
  .map((name) => `(extract(epoch from ${name}_at) * 1000)::float8 as ${name}`)
  .join(', ')

export interface SandboxSums {
  sandboxes: number
  /** By why they ended. */
  ends: Record<string, number>
  billedMs: number
}

export async function checkSandboxes(db: Queries, ledger: Ledger, accounts: Account[]): Promise<SandboxSums> {
  const sums: SandboxSums = { sandboxes: 0, ends: {}, billedMs: 0 }
  for (const account of accounts) {
    const rows = await db.query<Row>(
      `select id, account_id, pod_name, destroy_reason, destroy_detail, ${columns} from sandbox where account_id = ?`,
      [account.id],
    )
    for (const row of rows) {
      sums.sandboxes++
      const end = row.destroy_reason ?? 'active'
      sums.ends[end] = (sums.ends[end] ?? 0) + 1
      checkEnd(ledger, row)
      checkTimes(ledger, row)
    }
    checkQuota(ledger, account, rows)
    sums.billedMs += await checkUsage(ledger, account, rows)
  }
  await checkKnown(db, ledger)
  return sums
}

function checkEnd(ledger: Ledger, row: Row): void {
  const entry = ledger.sandboxes.get(row.id)
  const isHarmed = ledger.harmed.has(row.id) || (row.pod_name !== null && ledger.harmed.has(row.pod_name))
  const wrong = (what: string) =>
    ledger.wrong(what, { row, entry: { ...entry, commands: [] } }, [row.id, row.pod_name ?? undefined])
  if (row.destroy_reason === 'pod_failed' && !isHarmed)
    wrong('a sandbox lost its pod, and nobody had harmed it')
  if (row.destroy_reason === 'requested' && !entry?.isToGo)
    wrong('a sandbox was destroyed, and nobody had asked for it')
  if (row.destroy_reason === 'expired' && row.destroyed! < row.expires)
    wrong('a sandbox expired before its time')
  // It may have been started all the same; that it ran before is another thing.
  if (row.destroy_reason === 'start_failed' && row.ready !== null)
    wrong('a sandbox that ran ended as one that never started')
  if (row.destroy_reason === null) wrong('a sandbox that was destroyed lives on')
}

function checkTimes(ledger: Ledger, row: Row): void {
  const { created, ready, expires, destroyed } = row
  const end = destroyed === null ? expires : Math.min(destroyed, expires)
  const inOrder = created < expires && (ready === null || (created <= ready && ready <= Math.max(end, ready)))
  if (!inOrder || (destroyed !== null && destroyed < (ready ?? created))) {
    ledger.wrong('the times of a sandbox are out of order', { row }, [row.id])
  }
}

/** At most so many at once, by the rows alone: each beginning is after the ends that made room for it. */
function checkQuota(ledger: Ledger, account: Account, rows: Row[]): void {
  for (const { id, created } of rows) {
    const there = rows.filter(
      (row) => row.created <= created && Math.min(row.destroyed ?? row.expires, row.expires) > created,
    )
    if (there.length > cap) {
      ledger.wrong(
        'an account was over its quota',
        { account: account.id, id, there: there.map((row) => row.id) },
        [id],
      )
    }
  }
}

const between = (from: number | null, to: number) => (from === null ? 0 : Math.max(0, Math.round(to - from)))

/** What is shown is the sum of the intervals, to the millisecond. @returns it */
async function checkUsage(ledger: Ledger, account: Account, rows: Row[]): Promise<number> {
  const billed = rows.flatMap(({ ready, destroyed, expires, first_ready, first_ended }) => [
    between(ready, Math.min(destroyed ?? expires, expires)),
    between(first_ready, Math.min(first_ended ?? expires, expires)),
  ])
  const sum = billed.reduce((a, b) => a + b, 0)
  const { body } = await account.call('getAccount')
  if (body.usage.milliseconds !== sum) {
    ledger.wrong('usage is not the sum of its intervals', { account: account.id, sum, shown: body.usage })
  }
  return sum
}

async function checkKnown(db: Queries, ledger: Ledger): Promise<void> {
  const rows = await db.query<{ id: string; account_id: string }>('select id, account_id from sandbox')
  const owners = new Map(rows.map(({ id, account_id }) => [id, account_id]))
  for (const { id, accountId } of ledger.sandboxes.values()) {
    if (owners.get(id) !== accountId)
      ledger.wrong('a sandbox that was told has no row of its account', { id, accountId }, [id])
  }
}
