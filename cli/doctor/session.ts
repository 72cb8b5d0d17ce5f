import { limits } from '../../shared/contract/limits.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import type { Api, Reply } from '../core/api.ts'
import type { Checks } from '../core/checks.ts'
import { addHint, CliError, describeError } from '../core/errors.ts'
import { onShutdown } from '../core/shutdown.ts'
import { createRemote } from '../exec/remote.ts'

/** TTL of the test session, short enough that it soon expires if it cannot be destroyed. */
const ttlSeconds = 120

export async function checkSession({ check }: Checks, api: Api): Promise<void> {
  const creating = api.call('createSandbox', {
    body: { name: 'sandlot-doctor', ttl_seconds: ttlSeconds },
    headers: { 'idempotency-key': crypto.randomUUID() },
    timeoutMs: limits.createWaitMs + 30_000,
  })
  // After an interrupt, the session must be destroyed even if the create request is still open.
  const unregister = onShutdown(async () => {
    const { id } = await creating
    await api.call('destroySandbox', { params: { id } })
  })
  try {
    let created: Reply<'createSandbox'> | undefined
    await check('create', async () => {
      created = await creating
      return created.id
    })
    if (created === undefined) return
    const { id } = created
    try {
      if (await check('exec', () => runTrue(api, id))) await check('files', () => writeAndRead(api, id))
    } finally {
      await check('destroy', () => destroy(api, id))
    }
  } finally {
    unregister()
  }
}

async function runTrue(api: Api, id: string): Promise<string> {
  const { status, exit_code } = await createRemote(api, id).run({ command: ['true'] })
  if (exit_code === 0) return 'true ran'
  throw new CliError('failed', `true failed: ${status}, exit code ${exit_code}.`)
}

async function writeAndRead(api: Api, id: string): Promise<string> {
  const [path, content] = ['.sandlot-doctor', `${crypto.randomUUID()}\n`]
  await api.call('createFile', { params: { id }, body: { path, content } })
  const file = await api.call('viewFile', { params: { id }, query: { path } })
  if (file.content === content) return `${file.path} was written and read`
  throw new CliError('failed', `${file.path} does not contain the data that was written to it.`)
}

async function destroy(api: Api, id: string): Promise<string> {
  try {
    await api.call('destroySandbox', { params: { id } })
    return id
  } catch (error) {
    throw addHint(
      describeError(error),
      `\`${shellLine('sandlot', 'session', 'rm', '--yes', id)}\` destroys it. Otherwise it expires after ${ttlSeconds} s.`,
    )
  }
}
