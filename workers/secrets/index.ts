import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { readSecretsOf, secretSealContext } from '../../shared/data/secrets.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Opener } from '../../shared/platform/seal.ts'

export type Secrets = Record<string, string>

type SecretsReader = Pick<Context, 'db' | 'log'> & { opener: Opener }

/**
 * Returns the decrypted secrets of a sandbox and its account. The sandbox's secrets override the account's.
 * @throws {Problem} if a secret was encrypted with a key that this worker does not have
 */
export async function secretsFor(
  { db, opener, log }: SecretsReader,
  { id: sandboxId, account_id: accountId }: Pick<SandboxRow, 'id' | 'account_id'>,
): Promise<Secrets> {
  // Without a prototype, a secret may be named `__proto__`.
  const secrets: Secrets = Object.create(null)
  for (const { id, name, sealed_value } of await readSecretsOf(db, { accountId, sandboxId })) {
    try {
      secrets[name] = opener.open(sealed_value, secretSealContext(id))
    } catch (error) {
      log.error({ err: error, secret_id: id, account_id: accountId }, 'a secret cannot be decrypted')
      throw new Problem('internal_error', `The secret ${name} can no longer be decrypted. Create it again.`)
    }
  }
  return secrets
}
