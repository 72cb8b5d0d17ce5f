/** The life of a sandbox's row, for the API and the workers. The row is the only truth. */
import type { DestroyReason } from '../contract/sandboxes.ts'
import { prepare, type Queries, type Row } from './database.ts'
import { type SandboxRow, sandboxColumns, sandboxDates } from './entities.ts'
import { podName } from './ids.ts'

export type { SandboxRow }

/** Turns a row of a statement into a typed one. */
export function toSandbox(row: Row): SandboxRow {
  const sandbox = { ...row }
  for (const name of sandboxDates) {
    const text = row[name]
    if (typeof text === 'string') sandbox[name] = new Date(text)
  }
  return sandbox as unknown as SandboxRow
}

const byId = prepare('sandbox by id', `select ${sandboxColumns} from sandbox where id = ?`)

export async function findSandbox(db: Queries, id: string): Promise<SandboxRow | undefined> {
  const [row] = await db.run(byId, [id])
  return row && toSandbox(row)
}

/** Never before it began, whatever the clock of PostgreSQL did meanwhile. */
const endedNow = 'destroyed_at = greatest(sandlot_now(), coalesce(ready_at, created_at))'

/**
 * Ends a sandbox: it no longer counts against the quota, and its pod is to be deleted. A pod that fails before the
 * sandbox was ready has failed to start; if the sandbox has become ready meanwhile, it has not.
 * @returns the row if this call ended it, undefined if it was ended before or never was
 */
export async function endSandbox(
  db: Queries,
  id: string,
  reason: DestroyReason,
  detail: string | null = null,
): Promise<SandboxRow | undefined> {
  const [row] = await db.query(
    `update sandbox
        set ${endedNow},
            destroy_reason = case when ready_at is null and ? = 'pod_failed' then 'start_failed' else ? end,
            destroy_detail = ?
      where id = ? and destroyed_at is null and (ready_at is null or ? <> 'start_failed')
  returning *`,
    [reason, reason, detail, id, reason],
  )
  return row && toSandbox(row)
}

/** Ends an account's sandboxes that are past their cap. @returns their ids */
export async function endExpired(db: Queries, accountId: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update sandbox
        set ${endedNow}, destroy_reason = 'expired'
      where account_id = ? and destroyed_at is null and expires_at <= sandlot_now()
  returning id`,
    [accountId],
  )
  return rows.map(({ id }) => id)
}

/** Milliseconds that a row is billed within [since, until): in its pod, and in a warm one that died unused before that. */
export const billedMs = (since: string, until: string): string =>
  `(billed_ms(ready_at, destroyed_at, expires_at, ${since}, ${until}) +
    billed_ms(first_ready_at, first_ended_at, expires_at, ${since}, ${until}))`

/** When its bill began. */
export const billedSince = 'coalesce(first_ready_at, ready_at)'

/** The pod of a sandbox, as its row says. */
export const podOf = (sandbox: Pick<SandboxRow, 'id' | 'pod_name' | 'pod_uid'>) => ({
  name: sandbox.pod_name ?? podName(sandbox.id),
  uid: sandbox.pod_uid ?? undefined,
})

/** Milliseconds. No older warm pod is claimed: images and nodes change. */
export const warmPodMs = 60 * 60_000

/** Where a sandbox's environment is sealed for. */
export const envSealContext = (sandboxId: string) => `sandbox-env ${sandboxId}`
