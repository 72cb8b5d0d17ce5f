/** Secrets where they are used: opened for one command, and blanked out of what it prints. */
import { prepare } from '../../shared/database/index.ts'
import { Problem } from '../../shared/problem.ts'
import type { SandboxRow } from '../../shared/sandboxes.ts'
import { secretPlace } from '../../shared/secrets.ts'
import type { WorkerContext } from '../context.ts'
import { makeRedactor } from './redactor.ts'

export { makeRedactor, type Redactor } from './redactor.ts'

/** By name: the value, as text. */
export type Secrets = Record<string, string>

const ofSandbox = prepare(
  'secrets of a sandbox',
  `select id, name, sealed_value from secret
    where account_id = ? and (sandbox_id is null or sandbox_id = ?)
    order by sandbox_id nulls first`,
)

/**
 * What a command that starts now gets: the account's secrets, overridden by the sandbox's own.
 * In an environment they come first: the sandbox's `env` and the request's win over them.
 * @throws {Problem} when one was sealed under a key that is gone
 */
export async function secretsFor(
  { db, sealer, log }: Pick<WorkerContext, 'db' | 'sealer' | 'log'>,
  { id, account_id }: Pick<SandboxRow, 'id' | 'account_id'>,
): Promise<Secrets> {
  const rows = await db.run<{ id: string; name: string; sealed_value: Uint8Array }>(ofSandbox, [
    account_id,
    id,
  ])
  const open = ({ id: secretId, name, sealed_value }: (typeof rows)[number]) => {
    try {
      return sealer.open(sealed_value, secretPlace(secretId))
    } catch (error) {
      log.error({ err: error, secret_id: secretId, account_id }, 'a secret cannot be opened')
      throw new Problem('internal_error', `The secret ${name} cannot be opened any more. Create it again.`)
    }
  }
  // No prototype: `__proto__` is a name like any other.
  const secrets: Secrets = Object.create(null)
  for (const row of rows) secrets[row.name] = open(row)
  return secrets
}

/**
 * Bytes of a sandbox with every secret of it blanked out.
 * @param cut more would follow: bytes that begin a secret there are left out
 * @param byLine the bytes are some lines of more, which may begin or end within a secret
 */
export async function redactBytes(
  worker: Pick<WorkerContext, 'db' | 'sealer' | 'log'>,
  sandbox: Pick<SandboxRow, 'id' | 'account_id'>,
  bytes: Buffer,
  { cut = false, byLine = false } = {},
): Promise<Buffer> {
  const redactor = makeRedactor(await secretsFor(worker, sandbox), { byLine })
  const shown = redactor.push(bytes)
  return cut ? shown : Buffer.concat([shown, redactor.flush()])
}
