/** Secrets where they are used: opened for one command, and redacted in its output. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { readSecretsOf, secretSealContext } from '../../shared/data/secrets.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Opener } from '../../shared/platform/seal.ts'
import { buildPatterns, type SecretPatterns } from './patterns.ts'
import { Redactor } from './redactor.ts'
import { makeSharedValues, type SharedValue } from './shared-values.ts'

/** Values by name, as text. */
export type Secrets = Record<string, string>

export interface OpenSecrets {
  values: Secrets
  /** What redacts them; made at the first call. */
  patterns(byLine?: boolean): Promise<SecretPatterns | undefined>
}

type SecretRow = Awaited<ReturnType<typeof readSecretsOf>>[number]

type SecretsReader = Pick<Context, 'db' | 'log'> & { opener: Opener }

/**
 * Commands with the same secrets at the same time share them: what finds 500 KiB of values takes megabytes, and time to
 * make. The key is a hash of the sealed rows; no two of those are alike. An account has a few versions at a time.
 */
const opened = makeSharedValues<OpenSecrets>({ mostOfGroup: 8, waitMs: 10_000, late: tooManyVersions })

/**
 * The secrets of a command that starts now: the account's, overridden by the sandbox's own. The sandbox's `env` and the
 * request's win over both.
 * @returns what the caller must release when it needs them no longer
 * @throws {Problem} when one was sealed under a key that is gone
 */
export async function secretsFor(
  worker: SecretsReader,
  { id, account_id }: Pick<SandboxRow, 'id' | 'account_id'>,
): Promise<SharedValue<OpenSecrets>> {
  const rows = await readSecretsOf(worker.db, { accountId: account_id, sandboxId: id })
  return await opened.hold(account_id, versionOf(rows), async () => {
    const values = await openAll(worker, account_id, rows)
    const known = new Map<boolean, Promise<SecretPatterns | undefined>>()
    return {
      values,
      patterns(byLine = false) {
        const patterns = known.get(byLine) ?? buildPatterns(values, { byLine })
        known.set(byLine, patterns)
        return patterns
      },
    }
  })
}

function tooManyVersions(): never {
  throw new Problem(
    'rate_limited',
    'The secrets of this account were changed again and again while commands run with the earlier ones. ' +
      'Wait until one of those commands has ended.',
    { retryAfterSeconds: 10 },
  )
}

function versionOf(rows: readonly SecretRow[]): string {
  const hash = createHash('sha256')
  for (const { id, name, sealed_value } of rows) hash.update(`${id} ${name} `).update(sealed_value)
  return hash.digest('base64')
}

/** How many are opened before other work gets its turn: some 6 ms. */
const atOnce = 50

async function openAll(
  { opener, log }: SecretsReader,
  accountId: string,
  rows: readonly SecretRow[],
): Promise<Secrets> {
  // No prototype: `__proto__` is a name like any other.
  const secrets: Secrets = Object.create(null)
  for (const [index, { id, name, sealed_value }] of rows.entries()) {
    if (index % atOnce === atOnce - 1) await setImmediate()
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
  const { value, release } = await secretsFor(worker, sandbox)
  try {
    const redactor = new Redactor(await value.patterns(byLine))
    const shown = redactor.push(bytes)
    return cut ? shown : Buffer.concat([shown, redactor.flush()])
  } finally {
    release()
  }
}
