import { setTimeout as sleep } from 'node:timers/promises'
import { decide, warningOf } from '../../shared/allowlist/decide.ts'
import type { Allowlist } from '../../shared/contract/allowlist.ts'
import { allowlist as contract } from '../../shared/contract/allowlist.ts'
import { readAllowlist, writeAllowlist } from '../../shared/data/accounts.ts'
import { readRefusedCommands } from '../../shared/data/command-refusals.ts'
import type { Database, Queries } from '../../shared/data/database.ts'
import { rememberMs } from '../auth/api-keys.ts'
import { gone } from '../errors/credentials.ts'
import { route } from '../http/route.ts'

export const getAllowlist = route(contract.getAllowlist, async ({ account }, { context: { db } }) =>
  describe(db, account.id, await readAllowlist(db, account.id)),
)

export const setAllowlist = route(contract.setAllowlist, async ({ account, body }, { context: { db } }) => {
  await write(db, account.id, body.commands)
  // Returns the list of this request even if another request has replaced it since.
  return describe(db, account.id, body.commands)
})

export const clearAllowlist = route(contract.clearAllowlist, async ({ account }, { context: { db } }) => {
  await write(db, account.id, null)
  return undefined
})

export const checkAllowlist = route(
  contract.checkAllowlist,
  async ({ account, body }, { context: { db } }) => {
    const decision = decide(await readAllowlist(db, account.id), body.command)
    return decision.allowed
      ? { allowed: true, entry: decision.entry ?? null, reason: null }
      : { allowed: false, entry: null, reason: decision.reason }
  },
)

/** Stores an allowlist, then waits until no API process still has the previous one cached. */
async function write(db: Database, accountId: string, commands: string[] | null): Promise<void> {
  if (!(await writeAllowlist(db.share(accountId), accountId, commands))) throw gone()
  await sleep(rememberMs)
}

async function describe(db: Queries, accountId: string, commands: string[] | null): Promise<Allowlist> {
  const refusals = await readRefusedCommands(db, accountId)
  const warnings = (commands ?? []).flatMap((entry) => {
    const message = warningOf(entry)
    return message === undefined ? [] : [{ entry, message }]
  })
  return { commands, warnings, refusals }
}
