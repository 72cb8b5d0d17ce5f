import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { shareWorld } from '../support/shared.ts'
import { makeUsers, password } from './users.ts'

const world = shareWorld({ env: { RATE_LOGIN_PER_MINUTE: '100' } })
const users = makeUsers(world)

test('`account password` and `account end-sessions` read the password from stdin and do not save it', async () => {
  using other = await users.newUser()
  const before = readFileSync(other.home.configFile, 'utf8')
  const args = (command: string) => ['account', command, '--email', other.email, '--password-stdin']
  const change = (input: string) => other.run(args('password'), { input })
  expect(await change(`${password}\n`)).toMatchObject({ code: 2 })
  expect(await change(`another password\n${password}`)).toMatchObject({ code: 4 })
  expect(await change(`${password}\nquite a new password\n`)).toMatchObject({
    code: 0,
    stdout: `${other.email}\n`,
  })
  expect(await other.run(args('end-sessions'), { input: password })).toMatchObject({ code: 4 })
  expect(await other.run(args('end-sessions'), { input: 'quite a new password' })).toMatchObject({ code: 0 })
  expect(readFileSync(other.home.configFile, 'utf8')).toBe(before)
  expect(await other.run(['whoami'])).toMatchObject({ code: 0 })
})

test('`account delete` requires --yes and --confirm, and removes the saved key', async () => {
  using other = await users.newUser()
  using unrelated = await users.newUser()
  const with_ = ['account', 'delete', '--email', other.email, '--password-stdin']
  const input = { input: password }
  expect(await other.run(with_, input)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  const unsure = await other.run([...with_, '--yes'], input)
  expect(unsure).toMatchObject({ code: 2, stderr: expect.stringContaining('--confirm') })
  const wrong = await other.run([...with_, '--yes', '--confirm', unrelated.email], input)
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was deleted') })
  expect(await other.run(['whoami'])).toMatchObject({ code: 0 })

  const before = parse(readFileSync(other.home.configFile, 'utf8'))
  const deleted = await other.run([...with_, '--yes', '--confirm', other.email], input)
  expect(deleted).toMatchObject({ code: 0, stdout: `${other.email}\n` })
  expect(parse(readFileSync(other.home.configFile, 'utf8'))).toEqual({ base_url: before.base_url })
  const env = { SANDLOT_API_KEY: String(before.api_key) }
  await eventually(async () => (await other.run(['whoami'], { env })).code === 4, 10_000)
})
