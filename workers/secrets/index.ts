/** Secrets where they are used: opened for one command, and blanked out of what it prints. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { prepare } from '../../shared/data/database.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { secretSealContext } from '../../shared/data/secrets.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { WorkerContext } from '../context.ts'
import { buildPatterns, type SecretPatterns } from './patterns.ts'
import { makeRedactor } from './redactor.ts'
import { makeSharedValues, type SharedValue } from './shared-values.ts'

/** By name: the value, as text. */
export type Secrets = Record<string, string>

export interface OpenSecrets {
  values: Secrets
  /** What blanks them out, made when it is first asked for. */
  patterns(byLine?: boolean): Promise<SecretPatterns | undefined>
}

interface SecretRow extends Record<string, unknown> {
  id: string
  name: string
  sealed_value: Uint8Array
}

type SecretsReader = Pick<WorkerContext, 'db' | 'opener' | 'log'>

const ofSandbox = prepare(
  'secrets of a sandbox',
  `select id, name, sealed_value from secret
    where account_id = ? and (sandbox_id is null or sandbox_id = ?)
    order by sandbox_id nulls first`,
)

/**
 * All that have the same secrets use the same: what finds 500 KiB of them takes megabytes, and some time to make.
 * By a hash of the rows, as sealed; no two of those are alike.
 */
const opened = makeSharedValues<OpenSecrets>()

/**
 * What a command that starts now gets: the account's secrets, overridden by the sandbox's own.
 * In an environment they come first: the sandbox's `env` and the request's win over them.
 * @returns to be released by whoever has no more use for them
 * @throws {Problem} when one was sealed under a key that is gone
 */
export async function secretsFor(
  worker: SecretsReader,
  { id, account_id }: Pick<SandboxRow, 'id' | 'account_id'>,
): Promise<SharedValue<OpenSecrets>> {
  const rows = await worker.db.run<SecretRow>(ofSandbox, [account_id, id])
  return await opened.hold(versionOf(rows), async () => {
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

function versionOf(rows: readonly SecretRow[]): string {
  const hash = createHash('sha256')
  for (const { id, name, sealed_value } of rows) hash.update(`${id} ${name} `).update(sealed_value)
  return hash.digest('base64')
}

/** Some 6 ms of work: others take their turn between. */
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
 * Bytes of a sandbox with every secret of it blanked out.
 * @param cut more would follow: bytes that begin a secret there are left out
 * @param byLine the bytes are some lines of more, which may begin or end within a secret
 */
export async function redactBytes(
  worker: SecretsReader,
  sandbox: Pick<SandboxRow, 'id' | 'account_id'>,
  bytes: Buffer,
  { cut = false, byLine = false } = {},
): Promise<Buffer> {
  const { value, release } = await secretsFor(worker, sandbox)
  try {
    const redactor = makeRedactor(await value.patterns(byLine))
    const shown = redactor.push(bytes)
    return cut ? shown : Buffer.concat([shown, redactor.flush()])
  } finally {
    release()
  }
}
