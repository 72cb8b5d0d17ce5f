/** Remembers which driver made a clone's sandboxes, because another one can neither reach nor end them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StackSettings } from './stack-settings.ts'

/**
 * Remembers the driver of this start. Those of a cluster outlive the stack; local ones have ended with it.
 * @throws in words for the terminal when the former start's sandboxes are still in a cluster
 */
export async function guardDriver(
  data: string,
  { driver }: StackSettings,
  databaseUrl: string,
): Promise<void> {
  const file = join(data, 'driver')
  const former = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
  if (former === 'kubernetes' && driver !== former) {
    const count = await countSandboxes(databaseUrl)
    if (count > 0) throw new Error(describe(former, driver, count, file))
  }
  writeFileSync(file, `${driver}\n`, { mode: 0o600 })
}

/** All that may still have a pod. */
async function countSandboxes(databaseUrl: string): Promise<number> {
  // Not at the top: hardly a start needs it.
  const { openDatabase } = await import('../../shared/data/database.ts')
  const { countUnreaped } = await import('../../shared/data/sandbox-pods.ts')
  const db = openDatabase(databaseUrl, { connections: 1 })
  try {
    return await countUnreaped(db)
  } finally {
    await db.close()
  }
}

const describe = (former: string, driver: string, count: number, file: string) => `\
The last start had SANDBOX_DRIVER=${former}, and ${count} of its sandboxes may still run there; with ${driver} nobody
would end them. Start once more as before, until they have ended (npx sandlot session rm --all, or their deadline):
  SANDBOX_DRIVER=${former} KUBECONFIG=… npm start
If that cluster is gone, give them up: remove ${file} and type the same again.`
