/** The account's command allowlist, asked before a command goes to a worker. */
import { decide } from '../shared/allowlist.ts'
import { Problem } from '../shared/problem.ts'
import type { App } from './app.ts'
import type { Caller } from './authenticate.ts'

/**
 * Lets a command of a client pass, whichever way it came and will run. The list came with the look-up
 * of the API key, so this asks the database nothing unless it refuses.
 * @throws {Problem} `command_not_allowed`, and the refusal is counted
 */
export async function mustBeAllowed(
  { context }: Pick<App, 'context'>,
  account: Caller,
  command: string | readonly string[],
): Promise<void> {
  const decision = decide(account.allowlist, command)
  if (decision.allowed) return
  await countRefusal(context, account.id)
  throw new Problem('command_not_allowed', decision.reason, {
    members: {
      command: typeof command === 'string' ? '/bin/sh -c' : command[0],
      ...(decision.needs === undefined ? {} : { needs: decision.needs }),
    },
  })
}

/** Days are UTC; the sweep forgets them after a month. */
async function countRefusal({ db, log }: App['context'], accountId: string): Promise<void> {
  try {
    await db.query(
      `insert into command_refusal as kept (account_id, day, count)
       values (?, (sandlot_now() at time zone 'UTC')::date, 1)
       on conflict (account_id, day) do update set count = kept.count + 1`,
      [accountId],
    )
  } catch (error) {
    // It stays refused, counted or not.
    log.warn({ err: error, account_id: accountId }, 'a refused command was not counted')
  }
}
