/** Deletes old rows. Every statement uses an index and deletes a limited number of rows. */
import { encodeTime } from 'ulid'
import { limits } from '../../shared/contract/limits.ts'
import { readClock } from '../../shared/data/clock.ts'
import { forgetRefusedCommands } from '../../shared/data/command-refusals.ts'
import { forgetExecs } from '../../shared/data/exec-writes.ts'
import { forgetIdempotencyKeys } from '../../shared/data/idempotency-keys.ts'
import { forgetMetadata } from '../../shared/data/sandbox-writes.ts'
import { foldSandboxes } from '../../shared/data/usage.ts'
import type { Context } from '../../shared/platform/context.ts'

/** Maximum number of rows deleted per table and pass. */
const deleteLimit = 2_000
/** Maximum number of sandboxes whose usage is merged into totals per pass. */
const foldLimit = 200
const dayMs = 24 * 60 * 60 * 1000

export async function deleteExpiredRows({ db, settings }: Pick<Context, 'db' | 'settings'>): Promise<void> {
  await forgetIdempotencyKeys(db)
  await forgetRefusedCommands(db)
  const now = (await readClock(db)).getTime()
  const past = idPrefixAt(now - limits.pastDays * dayMs)
  await forgetExecs(db, { before: `exec_${past}`, limit: deleteLimit })
  await forgetMetadata(db, { before: `sbx_${past}`, limit: deleteLimit })
  const folded = idPrefixAt(now - settings.recordDays * dayMs)
  await foldSandboxes(db, { before: `sbx_${folded}`, limit: foldLimit })
}

const idPrefixAt = (ms: number): string => encodeTime(ms).toLowerCase()
