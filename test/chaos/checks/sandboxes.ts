/** Checks sandbox rows for quotas, end reasons and billed intervals. */
import type { Queries } from '../../../shared/data/database.ts'
import type { Account } from '../../support/account.ts'
import type { Recorder } from '../recorder.ts'
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
  /** Refers to the first pod if a warm pod died unused and was replaced. */
  first_ready: number | null
  first_ended: number | null
}

const columns = ['created', 'ready', 'expires', 'destroyed', 'first_ready', 'first_ended']
  .map((name) => `(extract(epoch from ${name}_at) * 1000)::float8 as ${name}`)
  .join(', ')

export interface SandboxSums {
  sandboxes: number
  ends: Record<string, number>
  billedMs: number
}

export async function checkSandboxes(
  db: Queries,
  recorder: Recorder,
  accounts: Account[],
): Promise<SandboxSums> {
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
      checkEnd(recorder, row)
      checkTimes(recorder, row)
    }
    checkQuota(recorder, account, rows)
    sums.billedMs += await checkUsage(recorder, account, rows)
  }
  await checkOwners(db, recorder)
  return sums
}

function checkEnd(recorder: Recorder, row: Row): void {
  const entry = recorder.sandboxes.get(row.id)
  const isHarmed = recorder.harmed.has(row.id) || (row.pod_name !== null && recorder.harmed.has(row.pod_name))
  const wrong = (what: string) =>
    recorder.wrong(what, { row, entry: { ...entry, commands: [] } }, [row.id, row.pod_name ?? undefined])
  if (row.destroy_reason === 'pod_failed' && !isHarmed) wrong('a sandbox lost its pod without a fault')
  if (row.destroy_reason === 'requested' && !entry?.isDestroyRequested)
    wrong('a sandbox was destroyed without a request')
  if (row.destroy_reason === 'expired' && row.destroyed! < row.expires)
    wrong('a sandbox expired before its expires_at')
  // The start may have succeeded late, but a ready sandbox must not end with this reason.
  if (row.destroy_reason === 'start_failed' && row.ready !== null)
    wrong('a sandbox that was ready ended with start_failed')
  if (row.destroy_reason === null) wrong('a destroyed sandbox is still active')
}

function checkTimes(recorder: Recorder, row: Row): void {
  const { created, ready, expires, destroyed } = row
  const end = destroyed === null ? expires : Math.min(destroyed, expires)
  const inOrder = created < expires && (ready === null || (created <= ready && ready <= Math.max(end, ready)))
  if (!inOrder || (destroyed !== null && destroyed < (ready ?? created))) {
    recorder.wrong('the times of a sandbox are out of order', { row }, [row.id])
  }
}

/** Counts concurrent sandboxes by the times in the rows. */
function checkQuota(recorder: Recorder, account: Account, rows: Row[]): void {
  for (const { id, created } of rows) {
    const active = rows.filter(
      (row) => row.created <= created && Math.min(row.destroyed ?? row.expires, row.expires) > created,
    )
    if (active.length > cap) {
      recorder.wrong(
        'an account was over its quota',
        { account: account.id, id, active: active.map((row) => row.id) },
        [id],
      )
    }
  }
}

const between = (from: number | null, to: number) => (from === null ? 0 : Math.max(0, Math.round(to - from)))

/** Compares reported usage with the sum of the intervals. @returns the sum in milliseconds */
async function checkUsage(recorder: Recorder, account: Account, rows: Row[]): Promise<number> {
  const billed = rows.flatMap(({ ready, destroyed, expires, first_ready, first_ended }) => [
    between(ready, Math.min(destroyed ?? expires, expires)),
    between(first_ready, Math.min(first_ended ?? expires, expires)),
  ])
  const sum = billed.reduce((a, b) => a + b, 0)
  const { body } = await account.call('getAccount')
  if (body.usage.milliseconds !== sum) {
    recorder.wrong('usage is not the sum of its intervals', { account: account.id, sum, shown: body.usage })
  }
  return sum
}

async function checkOwners(db: Queries, recorder: Recorder): Promise<void> {
  const rows = await db.query<{ id: string; account_id: string }>('select id, account_id from sandbox')
  const owners = new Map(rows.map(({ id, account_id }) => [id, account_id]))
  for (const { id, accountId } of recorder.sandboxes.values()) {
    if (owners.get(id) !== accountId)
      recorder.wrong('a reported sandbox has no row of its account', { id, accountId }, [id])
  }
}
