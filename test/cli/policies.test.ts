import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { newSandboxId } from '../../shared/data/ids.ts'
import { secretSealContext } from '../../shared/data/secrets.ts'
import { makeOpener } from '../../shared/platform/seal.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers } from './users.ts'

const world = shareWorld({ workers: 0 })
const users = makeUsers(world)

/** Inserts a destroyed sandbox with this running time. */
async function sandboxOf(email: string, { seconds = 0, ended = false } = {}): Promise<string> {
  const id = newSandboxId()
  await world.db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, expires_at, max_expires_at, destroyed_at, destroy_reason)
     select ?, account.id, 'any', 'sbx-' || gen_random_uuid(), start, start, start + interval '1 hour', start + interval '1 hour',
            case when ? then start + ? * interval '1 second' end, case when ? then 'requested' end
       from account, (select sandlot_now() - interval '1 minute' as start) as times where email = ?`,
    [id, ended, seconds, ended, email],
  )
  return id
}

describe('allowlist', () => {
  test("`allowlist get`, `set`, `check` and `clear` manage the account's allowlist", async () => {
    using user = await users.newUser()
    const none = 'There is no allowlist, so all commands are allowed.\n'
    expect(await user.run(['allowlist', 'get'])).toMatchObject({ code: 0, stdout: '', stderr: none })
    const check = (...command: string[]) => user.run(['allowlist', 'check', '--', ...command])
    expect(await check('rm', '-rf')).toMatchObject({ code: 0, stdout: '' })

    const set = await user.run(['allowlist', 'set', 'ls', 'git status', 'env'])
    expect(set).toMatchObject({ code: 0, stdout: 'ls\ngit status\nenv\n' })
    expect(set.stderr).toMatch(/^Warning: env: .*starts other commands.*\n$/)
    expect(await check('git', 'status', '--short')).toMatchObject({ code: 0, stdout: 'git status\n' })
    const refused = await check('git', 'push', '--json')
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('"git status"') })
    const asJson = await user.run(['allowlist', 'check', '--json', '--', 'rm'])
    expect(asJson).toMatchObject({ code: 1 })
    expect(asJson.json()).toMatchObject({ allowed: false, entry: null })

    expect(await user.run(['allowlist', 'clear', '--yes'])).toMatchObject({ code: 0, stdout: '' })
    expect((await user.run(['allowlist', 'get', '--json'])).json()).toMatchObject({ commands: null })
  })

  test('`allowlist set` accepts the output of `allowlist get` from a file or a pipe', async () => {
    using user = await users.newUser()
    const text = '# for the tests\nls\n\n  npm run *  \r\n'
    const file = join(user.home.folder, 'list')
    writeFileSync(file, text)
    expect(await user.run(['allowlist', 'set', '--file', file])).toMatchObject({
      code: 0,
      stdout: 'ls\nnpm run *\n',
    })
    const { stdout } = await user.run(['allowlist', 'get'])
    expect(await user.run(['allowlist', 'set', '--file', '-'], { input: stdout })).toMatchObject({
      code: 0,
      stdout,
    })
    // An empty pipe sets an empty list, which permits no command.
    const empty = await user.run(['allowlist', 'set', '--file', '-'], { input: '' })
    expect(empty).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('no commands are allowed'),
    })
  })

  test.each([[['set']], [['set', 'ls', '--file', 'x']], [['set', 'l*']], [['check']]])(
    'the client rejects `allowlist` with the arguments %j as invalid usage',
    async (args) => {
      using user = await users.newUser()
      expect(await user.run(['allowlist', ...args])).toMatchObject({ code: 2, stdout: '' })
      expect((await user.run(['allowlist', 'get', '--json'])).json().commands).toBeNull()
    },
  )

  test('`exec` names a command that is not on the allowlist and exits with code 125', async () => {
    using user = await users.newUser()
    const id = await sandboxOf(user.email)
    await user.run(['allowlist', 'set', 'ls'])
    const refused = await user.run(['exec', '-s', id, '--', 'rm', '-rf', '/'])
    expect(refused).toMatchObject({
      code: 125,
      stdout: '',
      stderr: expect.stringContaining('"rm" is not on'),
    })
  })
})

describe('secrets', () => {
  /** Decrypts the stored value as a worker does. */
  async function storedValue(email: string, name: string): Promise<string> {
    const [row] = await world.db.query<{ id: string; sealed_value: Buffer }>(
      `select secret.id, sealed_value from secret join account on account.id = account_id
        where email = ? and name = ?`,
      [email, name],
    )
    return makeOpener(world.settings.secretsKeys).open(row!.sealed_value, secretSealContext(row!.id))
  }

  test('`secrets create`, `ls` and `rm` manage a secret', async () => {
    using user = await users.newUser()
    const session = await sandboxOf(user.email)
    const create = (args: string[], input?: string) =>
      user.run(['secrets', 'create', ...args], input === undefined ? {} : { input })
    expect(await create(['PIPED'], 'p4ssw0rd!\n')).toMatchObject({ code: 0, stdout: 'PIPED\n' })
    expect(await storedValue(user.email, 'PIPED')).toBe('p4ssw0rd!')
    const file = join(user.home.folder, 'key.pem')
    writeFileSync(file, 'line 1\nline 2\n')
    expect(await create(['FILE', '--from-file', file, '--session', session])).toMatchObject({ code: 0 })
    expect(await storedValue(user.email, 'FILE')).toBe('line 1\nline 2\n')
    expect(await create(['EXACT', '--short', '--from-file', '-'], 'a\n')).toMatchObject({ code: 0 })
    expect(await storedValue(user.email, 'EXACT')).toBe('a\n')

    const all = await user.run(['secrets', 'ls'])
    expect(all.stdout).toMatch(new RegExp(`^EXACT\tall\t.*\nFILE\t${session}\t.*\nPIPED\tall\t.*\n$`))
    expect((await user.run(['secrets', 'ls', '-s', session])).stdout).toMatch(/^FILE\t/)
    expect(await user.run(['secrets', 'rm', '--yes', 'FILE'])).toMatchObject({ code: 3 })
    expect(await user.run(['secrets', 'rm', '--yes', 'FILE', '-s', session])).toMatchObject({
      code: 0,
      stdout: 'FILE\n',
    })
    const { data } = (await user.run(['secrets', 'ls', '--json'])).json()
    expect(data.map(({ name }: { name: string }) => name)).toEqual(['EXACT', 'PIPED'])
  })

  test.each([
    ['no value', ['NAME'], undefined],
    ['an empty pipe', ['NAME'], ''],
    ['an invalid variable name', ['A-B'], 'x'],
  ])('`secrets create` rejects %s', async (_, args, input) => {
    using user = await users.newUser()
    const options = input === undefined ? {} : { input }
    expect(await user.run(['secrets', 'create', ...args], options)).toMatchObject({ code: 2, stdout: '' })
    expect((await user.run(['secrets', 'ls'])).stdout).toBe('')
  })

  test.each([['p4ssw0rd!'], ['-----BEGIN KEY-----p4ssw0rd!'], ['-p4ssw0rd!'], ['p4ssw0rd!', '--json']])(
    '`secrets create` rejects a value passed as an argument (%s) and does not print the value',
    async (...words) => {
      using user = await users.newUser()
      const { code, stdout, stderr } = await user.run(['secrets', 'create', 'NAME', ...words], { input: 'x' })
      expect(code).toBe(2)
      expect(stdout + stderr).not.toContain('p4ss')
      expect(stderr).toContain('stdin, from --from-file or from a prompt')
      expect((await user.run(['secrets', 'ls'])).stdout).toBe('')
    },
  )

  test('`secrets create` rejects a short value unless --short is given or the user confirms', async () => {
    using user = await users.newUser()
    const refused = await user.run(['secrets', 'create', 'PIN', '--json'], { input: '1234567' })
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('Use --short') })
    expect(refused.json().error.message).toContain('fewer than 8 bytes is not redacted from output')
    expect((await user.run(['secrets', 'ls'])).stdout).toBe('')
    expect(await user.run(['secrets', 'create', 'PIN', '--short'], { input: '1234567' })).toMatchObject({
      code: 0,
    })
    expect(await user.run(['secrets', 'create', 'LONG'], { input: '12345678' })).toMatchObject({ code: 0 })
    const terminal = openTerminal(
      [process.execPath, clientPath, 'secrets', 'create', 'ASKED'],
      user.home.environment(),
    )
    await terminal.shows('Value')
    terminal.type('1234567\r')
    await terminal.shows('Set it anyway?')
    terminal.type('\r')
    expect(await terminal.ended).toBe(1)
    expect((await user.run(['secrets', 'ls', '--quiet'])).stdout).toBe('LONG\nPIN\n')
  })

  test('`secrets create` prompts for the value on a terminal without echoing it', async () => {
    using user = await users.newUser()
    const terminal = openTerminal(
      [process.execPath, clientPath, 'secrets', 'create', 'TYPED'],
      user.home.environment(),
    )
    await terminal.shows('Value')
    for (const letter of 'p4ssw0rd!') terminal.type(letter)
    terminal.type('\r')
    expect(await terminal.ended).toBe(0)
    expect(stripVTControlCharacters(terminal.screen())).not.toMatch(/p4ss|\*\*/)
    expect(await storedValue(user.email, 'TYPED')).toBe('p4ssw0rd!')
  })
})

describe('whoami --usage', () => {
  test('`whoami --usage` lists the sandboxes from all pages and shows the total', async () => {
    using user = await users.newUser()
    const sandbox = () => sandboxOf(user.email, { seconds: 1.5, ended: true })
    await Promise.all(Array.from({ length: 101 }, sandbox))
    const usage = (await user.run(['whoami', '--usage', '--json'])).json()
    expect(usage.data).toHaveLength(101)
    expect(usage.total.milliseconds).toBe(151_500)
    const { stdout } = await user.run(['whoami', '--usage'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(102)
    expect(lines[0]).toMatch(/^sbx_\w+\t\t.*\t1\.500$/)
    expect(lines.at(-1)).toMatch(/^total\t20\d\d-\d\d\t.*\t151\.500$/)
  })

  test('`whoami --usage` accepts an earlier month and rejects an invalid month', async () => {
    using user = await users.newUser()
    const { stdout } = await user.run(['whoami', '--usage', '--month', '2020-01'])
    expect(stdout).toMatch(/^total\t2020-01\t.*\t0\.000\n$/)
    expect(await user.run(['whoami', '--usage', '--month', 'may'])).toMatchObject({ code: 2 })
    expect(await user.run(['whoami', '--month', '2020-01'])).toMatchObject({ code: 2 })
  })
})
