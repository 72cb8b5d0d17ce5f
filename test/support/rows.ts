import { newSandboxId } from '../../shared/data/ids.ts'
import type { World } from './world.ts'

/** SQL for the columns of an active sandbox without a pod. */
const defaults = {
  image: "'any'",
  pod_name: "'sbx-' || gen_random_uuid()",
  created_at: 'sandlot_now()',
  ready_at: 'sandlot_now()',
  expires_at: "sandlot_now() + interval '1 hour'",
  max_expires_at: "sandlot_now() + interval '1 hour'",
}

/** @param columns values that replace the defaults @returns the sandbox id */
export async function insertSandbox(
  { db }: Pick<World, 'db'>,
  account: { id: string },
  columns: Record<string, unknown> = {},
): Promise<string> {
  const id = newSandboxId()
  const maxExpiry = 'expires_at' in columns && { max_expires_at: columns.expires_at }
  const given = { id, account_id: account.id, ...maxExpiry, ...columns }
  const unset = Object.entries(defaults).filter(([name]) => !(name in given))
  const names = [...Object.keys(given), ...unset.map(([name]) => name)]
  const values = [...Object.keys(given).map(() => '?'), ...unset.map(([, sql]) => sql)]
  await db.query(`insert into sandbox (${names}) values (${values})`, Object.values(given))
  return id
}
