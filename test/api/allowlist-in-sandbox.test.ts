/** The allowlist in running sandboxes, where environment variables and secrets are already set. */
import { beforeEach, expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld()
let alice: Account

beforeEach(async () => {
  alice = await world.account()
})

const create = async (env: Record<string, string> = {}) => ({
  id: (await alice.call('createSandbox', { body: { env } })).body.id,
})
const run = async (params: { id: string }, command: string[]) =>
  (await alice.call('execCommand', { params, body: { command } })).body.stdout
const list = (commands: string[]) => alice.call('setAllowlist', { body: { commands } })

const kinds = [
  { body: {} },
  { body: {}, headers: { accept: 'text/event-stream' } },
  { body: { background: true } },
  { body: { tty: true } },
]

test('while an allowlist is set, rejects commands in a sandbox that has a dangerous environment variable', async () => {
  const params = await create({ BASH_ENV: '/workspace/first' })
  await alice.call('createFile', { params, body: { path: 'first', content: 'echo injected' } })
  // Without the list, Debian's bash runs the file.
  expect(await run(params, ['bash', '-c', ':'])).toBe('injected\n')
  await list(['bash', 'true'])
  for (const { body, headers = {} } of kinds) {
    const refused = alice.call('execCommand', { params, body: { command: ['true'], ...body }, headers })
    await expect(refused).rejects.toMatchObject({
      status: 403,
      code: 'command_not_allowed',
      problem: {
        variable: 'BASH_ENV',
        detail: expect.stringMatching(/Create a sandbox without this variable/),
      },
    })
  }
  expect((await alice.call('listExecs', { params })).body.data).toHaveLength(1)
  expect((await alice.call('getAllowlist')).body.refusals[0]!.count).toBe(kinds.length)
  expect(await run(await create({ PLAIN: '1' }), ['bash', '-c', 'echo $PLAIN'])).toBe('1\n')
})

test('while an allowlist is set, rejects commands if an existing secret has a dangerous name', async () => {
  const params = await create()
  await alice.call('createSecret', { body: { name: 'PERL5OPT', value: '-Mx' } })
  await list(['echo'])
  await expect(run(params, ['echo', 'x'])).rejects.toMatchObject({
    code: 'command_not_allowed',
    problem: {
      variable: 'PERL5OPT',
      detail: expect.stringMatching(/^The secret PERL5OPT .* Delete the secret/),
    },
  })
  await alice.call('deleteSecret', { params: { name: 'PERL5OPT' } })
  expect(await run(params, ['echo', 'x'])).toBe('x\n')
})

test('while an allowlist is set, rejects new sandboxes and secrets with dangerous variable names', async () => {
  await list(['echo'])
  const refused = { status: 403, code: 'command_not_allowed', problem: { variable: 'LD_PRELOAD' } }
  await expect(create({ LD_PRELOAD: 'x.so' })).rejects.toMatchObject(refused)
  const secret = { name: 'LD_PRELOAD', value: 'x.so' }
  await expect(alice.call('createSecret', { body: secret })).rejects.toMatchObject(refused)
  expect((await alice.call('listSandboxes')).body.data).toEqual([])
  expect((await alice.call('listSecrets')).body.data).toEqual([])
  await alice.call('clearAllowlist')
  await alice.call('createSecret', { body: secret })
})

test('`find -exec` and `sort -o` bypass the allowlist as documented', async () => {
  const params = await create()
  await list(['find', 'sort'])
  expect(await run(params, ['find', '.', '-maxdepth', '0', '-exec', 'echo', 'ran', ';'])).toBe('ran\n')
  await run(params, ['sort', '-o', '/workspace/written', '/etc/passwd'])
  expect((await alice.call('viewFile', { params, query: { path: 'written' } })).body.content).toContain(
    'root',
  )
})
