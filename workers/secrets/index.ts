/** Secrets where they are used: opened for one command, and redacted in its output. */
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { readSecretsOf, secretSealContext } from '../../shared/data/secrets.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Opener } from '../../shared/platform/seal.ts'
import { buildPatterns } from './patterns.ts'
import { Redactor } from './redactor.ts'

export type Secrets = Record<string, string>

type SecretsReader = Pick<Context, 'db' | 'log'> & { opener: Opener }

/**
 * The secrets of a command that starts now: the account's, overridden by the sandbox's own. The sandbox's `env` and the
 * request's win over both.
 * @throws {Problem} when one was sealed under a key that is gone
 */
export async function secretsFor(
  { db, opener, log }: SecretsReader,
  { id: sandboxId, account_id: accountId }: Pick<SandboxRow, 'id' | 'account_id'>,
): Promise<Secrets> {
  // No prototype: `__proto__` is a name like any other.
  const secrets: Secrets = Object.create(null)
  for (const { id, name, sealed_value } of await readSecretsOf(db, { accountId, sandboxId })) {
    try {
      secrets[name] = opener.open(sealed_value, secretSealContext(id))
    } catch (error) {
      log.error({ err: error, secret_id: id, account_id: accountId }, 'a secret cannot be opened')
      throw new Problem('internal_error', `The secret ${name} cannot be opened any more. Create it again.`)
    }
  }
  return secrets
}

/**
 * Bytes of a sandbox, with its secrets redacted.
 * @param cut more would follow: bytes at the end that begin a secret are left out
 * @param byLine the bytes are some lines of more, so they may begin or end within a secret
 */
export async function redactBytes(
  worker: SecretsReader,
  sandbox: Pick<SandboxRow, 'id' | 'account_id'>,
  bytes: Buffer,
  { cut = false, byLine = false } = {},
): Promise<Buffer> {
  const redactor = new Redactor(await buildPatterns(await secretsFor(worker, sandbox), { byLine }))
  const shown = redactor.push(bytes)
  return cut ? shown : Buffer.concat([shown, redactor.flush()])
}
