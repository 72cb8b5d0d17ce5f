import { newSandboxId } from '../../shared/data/ids.ts'
import type { World } from './world.ts'

/** Inserts an active sandbox without a pod. @returns the sandbox id */
export async function insertSandbox({ db }: Pick<World, 'db'>, account: { id: string }): Promise<string> {
  const id = newSandboxId()
  await db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, expires_at)
     values (?, ?, 'any', 'sbx-' || gen_random_uuid(), sandlot_now(), sandlot_now(), sandlot_now() + interval '1 hour')`,
    [id, account.id],
  )
  return id
}
