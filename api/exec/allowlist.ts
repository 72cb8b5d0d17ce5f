import { type Decision, decide, refuseVariables } from '../../shared/allowlist/decide.ts'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { countRefusedCommand } from '../../shared/data/command-refusals.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'

/**
 * Checks a command against the account's allowlist. A refusal increments the account's count of refused
 * commands.
 * @throws {Problem} `command_not_allowed`
 */
export async function assertAllowed(
  { context }: Pick<App, 'context'>,
  account: Caller,
  { command, env }: Pick<ExecRequest, 'command' | 'env'>,
): Promise<void> {
  const decision = decide(account.allowlist, command, env)
  if (decision.allowed) return
  await countRefusal(context, account.id)
  throw refused(decision, { command: typeof command === 'string' ? '/bin/sh -c' : command[0] })
}

/**
 * Checks the variables of a new sandbox or secret. Unlike {@link assertAllowed}, does not count refusals.
 * @throws {Problem} `command_not_allowed` if a variable could make an allowed command run another program
 */
export function assertStorable(
  { allowlist }: Pick<Caller, 'allowlist'>,
  source: 'sandbox' | 'secret',
  env: Record<string, unknown> = {},
): void {
  const decision = allowlist ? refuseVariables(source, env) : undefined
  if (decision) throw refused(decision)
}

/**
 * Returns a handler for failed worker calls that counts the commands refused by the worker. Only workers can
 * check stored variables and secrets against the allowlist, because only they can decrypt them.
 */
export const countRefused =
  ({ context }: Pick<App, 'context'>, account: Pick<Caller, 'id'>) =>
  async (error: unknown): Promise<never> => {
    if (error instanceof Problem && error.code === 'command_not_allowed')
      await countRefusal(context, account.id)
    throw error
  }

function refused(
  { reason, needs, variable }: Extract<Decision, { allowed: false }>,
  members: Record<string, unknown> = {},
): Problem {
  const named = { ...members, ...(needs && { needs }), ...(variable && { variable }) }
  return new Problem('command_not_allowed', reason, { members: named })
}

async function countRefusal({ db, log }: App['context'], accountId: string): Promise<void> {
  try {
    await countRefusedCommand(db.share(accountId), accountId)
  } catch (error) {
    log.warn({ err: error, account_id: accountId }, 'could not count a refused command')
  }
}
