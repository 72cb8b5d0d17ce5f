import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { listAccounts, revokeSessionsOf, suspendAccount, unsuspendAccount } from '../../api/admin/accounts.ts'
import { readLimits } from '../../api/admin/limits.ts'
import { root } from '../../scripts/root.mjs'
import { fingerprintOf } from '../../shared/rpc/key-holders.ts'
import { listWorkers } from '../../shared/rpc/worker-registry.ts'
import { type Account, callAs, codeOf } from '../support/account.ts'
import { startWorld } from '../support/index.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '3' } })

/** Runs an admin command with only DATABASE_URL. */
const admin = (...args: string[]) => adminWith({ DATABASE_URL: world.settings.databaseUrl }, args)

async function adminWith(env: Record<string, string>, args: string[]) {
  const child = spawn(process.execPath, ['scripts/admin.ts', ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const code = new Promise<number | null>((resolve) => child.on('close', resolve))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await code, stdout, stderr }
}

/** A process caches a key for less than a second. */
const withinASecond = (probe: () => Promise<boolean>) => world.eventually(probe, 1_000)

const create = async (account: Account) => (await account.call('createSandbox')).body.id

test("`admin limits` changes an account's limits within a second, and --reset restores the defaults", async () => {
  const alice = await world.account()
  const { body: before } = await alice.call('getAccount')
  const flags = ['--concurrent', '1', '--hours', '0.5', '--seconds', '7200']
  const set = await admin('limits', alice.email, ...flags, '--sandbox-ops', '5', '--sandbox-lifecycle', '2')
  expect(set).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^concurrent +1\nhours +0.5\nseconds +7200\n/),
  })
  await withinASecond(async () => {
    const { body } = await alice.call('getAccount')
    return (
      body.concurrent.limit === 1 &&
      body.usage.limit === 0.5 &&
      JSON.stringify(Object.values(body.limits)) === '[7200,5,2]'
    )
  })
  const { body, headers } = await alice.call('createSandbox', { body: { ttl_seconds: 7200 } })
  expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(7_200_000)
  expect(headers.get('x-ratelimit-limit')).toBe('2')
  expect(await codeOf(alice.call('createSandbox', { body: { ttl_seconds: 7201 } }))).toBe('invalid_request')
  expect(await codeOf(alice.call('createSandbox'))).toBe('rate_limited')
  await admin('limits', alice.email, '--sandbox-lifecycle', 'default')
  await withinASecond(
    async () => (await codeOf(alice.call('createSandbox'))) === 'concurrent_sandbox_limit_reached',
  )
  expect(await admin('limits', alice.email, '--reset')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^(\S+ +default \([A-Z_]+\)\n){5}$/),
  })
  await withinASecond(async () => {
    const { usage, concurrent, limits } = (await alice.call('getAccount')).body
    return (
      JSON.stringify([usage.limit, concurrent.limit, limits]) ===
      JSON.stringify([before.usage.limit, before.concurrent.limit, before.limits])
    )
  })
})

test("`admin keys` shows the fingerprints of each process's keys", async () => {
  const { redisUrl, jwtSecrets } = world.settings
  const { code, stdout } = await adminWith({ REDIS_URL: redisUrl }, ['--json', 'keys'])
  expect(code).toBe(0)
  const { data, missing } = JSON.parse(stdout)
  expect(data.map(({ kind }: { kind: string }) => kind)).toEqual(['api', 'worker'])
  expect(data[0].keys.JWT_SECRET).toEqual(jwtSecrets.map(fingerprintOf))
  expect(missing).toEqual([])
  const away = await adminWith({ REDIS_URL: 'redis://127.0.0.1:1' }, ['keys'])
  expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining('ECONNREFUSED') })
})

test('`admin ready` exits with status 1 if the process is not ready', async () => {
  await using other = await startWorld({ workers: 0 })
  const ready = (process: { internalUrl: string }, ...args: string[]) =>
    adminWith({ INTERNAL_PORT: new URL(process.internalUrl).port }, ['ready', ...args])
  const worker = await ready(world.workers[0]!)
  expect(worker).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ready\n/) })
  expect(worker.stdout).toMatch(/^postgres +ok$/m)
  const api = await ready(other.apis[0]!)
  expect(api).toMatchObject({ code: 1, stderr: '', stdout: expect.stringMatching(/^unavailable\n/) })
  expect(api.stdout).toMatch(/^workers +no worker is running$/m)
  const json = await ready(other.apis[0]!, '--json')
  expect({ ...json, stdout: JSON.parse(json.stdout) }).toMatchObject({
    code: 1,
    stdout: { status: 'unavailable', parts: { redis: 'ok', workers: 'no worker is running' } },
  })
  const unreachable = await adminWith({ INTERNAL_PORT: '1' }, ['ready'])
  expect(unreachable).toMatchObject({ code: 1, stderr: expect.stringContaining('INTERNAL_PORT') })
})

test('`admin --help` shows the npm command in its usage line', async () => {
  const { code, stdout, stderr } = await admin('--help')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: npm run admin -- \[--json\] COMMAND\n/)
})

test('`admin end-sessions` ends all logins of an account but keeps its API keys valid', async () => {
  const alice = await world.account()
  expect(await admin('end-sessions', alice.email)).toMatchObject({ code: 0 })
  expect(await codeOf(alice.call('listApiKeys'))).toBe('invalid_credentials')
  expect((await alice.call('getAccount')).status).toBe(200)
})

test('`admin reset-password` ends all logins of an account but keeps its API keys valid', async () => {
  const alice = await world.account()
  const { code, stdout } = await admin('reset-password', alice.email, '--json')
  const { password, ...told } = JSON.parse(stdout)
  expect({ code, ...told }).toEqual({ code: 0, id: alice.id, email: alice.email, sessions_ended: true })
  const logIn = (password: string) => callAs(world, {}, 'logIn', { body: { email: alice.email, password } })
  expect(await codeOf(logIn(alice.password))).toBe('invalid_credentials')
  expect(await codeOf(alice.call('listApiKeys'))).toBe('invalid_credentials')
  expect((await alice.call('getAccount')).status).toBe(200)
  expect((await logIn(password)).body.account.id).toBe(alice.id)
  expect((await admin('reset-password', alice.email)).stdout).toMatch(
    / is [\w-]{20}\nThis password is not shown again\. /,
  )
})

// Concurrent, because the reconciler ignores rows that are only seconds old.
test.concurrent('a suspended account cannot use its sandboxes, keys or logins until the suspension is lifted', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const sandboxes = [await create(alice), await create(alice)]
  const bobs = await create(bob)
  expect(await admin('suspend', alice.email)).toMatchObject({
    code: 0,
    stdout: `${alice.email} is suspended. Sandboxes ended: 2.\n`,
  })
  await withinASecond(async () => (await codeOf(alice.call('getAccount'))) === 'account_suspended')
  const { email, password } = alice
  expect(await codeOf(callAs(world, {}, 'logIn', { body: { email, password } }))).toBe('account_suspended')
  expect(await codeOf(alice.call('listApiKeys'))).toBe('account_suspended')
  // The reconciler deletes pods even if no job does.
  await world.eventually(async () => {
    const rows = await world.db.query('select destroy_reason, reaped_at from sandbox where id = any(?)', [
      sandboxes,
    ])
    return rows.every((row) => row.destroy_reason === 'suspended' && row.reaped_at !== null)
  }, 20_000)
  expect((await bob.call('getSandbox', { params: { id: bobs } })).body.state).toBe('active')

  expect(await admin('unsuspend', alice.email)).toMatchObject({ code: 0 })
  await withinASecond(async () => (await codeOf(alice.call('getAccount'))) === 'success')
  const { body } = await alice.call('listSandboxes', { query: { state: 'destroyed' } })
  expect(body.data.map(({ destroy_reason }) => destroy_reason)).toEqual(['suspended', 'suspended'])
})

test.concurrent('deleting an account deletes all of its rows and frees its email address', async () => {
  const alice = await world.account()
  const id = await create(alice)
  await alice.call('createSecret', { body: { name: 'TOKEN', value: 'a value' } })
  await alice.call('createSecret', { body: { name: 'TOKEN', value: 'a value', sandbox_id: id } })
  await alice.call('execCommand', { params: { id }, body: { command: 'true' } })
  await alice.call('setAllowlist', { body: { commands: [] } })
  await codeOf(alice.call('execCommand', { params: { id }, body: { command: 'true' } }))
  expect(await admin('delete', alice.email)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--yes'),
  })
  expect(await codeOf(alice.call('getAccount'))).toBe('success')

  const deleted = await admin('delete', alice.email, '--yes')
  expect(deleted).toMatchObject({ code: 0, stdout: `${alice.email} has been deleted.\n` })
  for (const table of ['api_key', 'sandbox', 'secret', 'command_refusal', 'idempotency_key']) {
    expect(await world.db.query(`select * from ${table} where account_id = ?`, [alice.id]), table).toEqual([])
  }
  await withinASecond(async () => (await codeOf(alice.call('getAccount'))) === 'invalid_credentials')
  expect(await codeOf(alice.call('listApiKeys'))).toBe('invalid_credentials')
  const again = await world.account({ email: alice.email })
  expect(again.id).not.toBe(alice.id)
})

test.concurrent('account owners can delete their own account if they provide the password', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  await create(alice)
  const remove = (current_password: string) => alice.call('deleteAccount', { body: { current_password } })
  expect(await codeOf(remove('not her password'))).toBe('invalid_credentials')
  expect(await codeOf(alice.call('getAccount'))).toBe('success')

  const { id, email } = alice
  expect((await remove(alice.password)).body).toEqual({ id, email, sandboxes_ended: 1 })
  await withinASecond(async () => (await codeOf(alice.call('getAccount'))) !== 'success')
  const rows = () => world.db.query('select id from account where id = ?', [id])
  await world.eventually(async () => (await rows()).length === 0, 20_000)
  expect(await codeOf(remove(alice.password))).toBe('invalid_credentials')
  expect(await codeOf(bob.call('getAccount'))).toBe('success')
  expect((await world.account({ email })).id).not.toBe(id)
})

test.concurrent('an account that is being deleted stays suspended until its last pod is deleted', async () => {
  await using slow = await startWorld({ workers: 0 })
  const alice = await slow.account()
  const id = await insertSandbox(slow, alice, { ready_at: null })
  await slow.db.query(
    'update account set suspended_at = sandlot_now(), deleted_at = sandlot_now() where id = ?',
    [alice.id],
  )
  const refused = await adminWith({ DATABASE_URL: slow.settings.databaseUrl }, ['unsuspend', alice.email])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('being deleted') })
  await slow.startWorker({ RECONCILE_INTERVAL_SECONDS: '0.1' })
  // The account is not deleted yet, because its sandbox is still active.
  await slow.eventually(async () => (await listWorkers(slow)).length === 1, 10_000)
  const rows = () => slow.db.query('select id from account where id = ?', [alice.id])
  expect(await rows()).toHaveLength(1)
  await slow.db.query(
    `update sandbox set destroyed_at = sandlot_now(), destroy_reason = 'suspended' where id = ?`,
    [id],
  )
  await slow.eventually(async () => (await rows()).length === 0, 20_000)
})

test('`admin accounts` lists accounts with their state, sandboxes, used hours and limits', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  await create(alice)
  await admin('limits', alice.email, '--hours', '3')
  await admin('suspend', bob.email)
  const { code, stdout } = await admin('accounts')
  expect(code).toBe(0)
  const lines = stdout.split('\n')
  expect(lines[0]).toMatch(/^EMAIL +ID +SINCE +STATE +SANDBOXES +HOURS +OWN LIMITS$/)
  expect(lines.find((line) => line.startsWith(alice.email))).toMatch(/ active +1 +0\.0\d +hours=3$/)
  expect(lines.find((line) => line.startsWith(bob.email))).toMatch(/ suspended +0 +0\.00$/)
})

test('`admin --json` prints exactly one JSON object, even for an error', async () => {
  const alice = await world.account()
  await create(alice)
  const { email, id } = alice
  const limits = { concurrent: null, hours: 3, seconds: null, 'sandbox-ops': null, 'sandbox-lifecycle': null }
  const { code, stdout } = await admin('--json', 'limits', email, '--hours', '3')
  expect({ code, ...JSON.parse(stdout) }).toEqual({ code: 0, id, email, limits })
  const wrong = await admin('limit', email, '--json')
  const message = 'Unknown admin command limit.'
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
  expect(JSON.parse(wrong.stdout)).toEqual({ error: { message, exit_code: 2 } })

  const { data } = (await listAccounts(world.db)).value as { data: { id: string }[] }
  expect(data.find((each) => each.id === id)).toEqual({
    id,
    email,
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    state: 'active',
    sandboxes: 1,
    sandbox_hours: expect.any(Number),
    limits,
  })
  const account = { id, email }
  const suspended = { id, email, state: 'suspended', sandboxes_ended: 1 }
  expect((await suspendAccount(world.db, account)).value).toEqual(suspended)
  expect((await unsuspendAccount(world.db, account)).value).toEqual({ id, email, state: 'active' })
  expect((await revokeSessionsOf(world.db, account)).value).toEqual({ id, email, sessions_ended: true })
})

test.each([
  [[], 2, 'A command is missing.\n\nUsage'],
  [['acounts'], 2, 'Unknown admin command acounts.\n\nUsage'],
  [['suspend'], 2, 'suspend requires the EMAIL of one account.'],
  [['accounts', 'a@b.c'], 2, 'accounts does not accept an EMAIL.'],
  [['suspend', 'nobody@example.com'], 1, 'No account exists for nobody@example.com'],
  [['suspend', 'a@b.c', '--hours', '1'], 2, 'suspend has no option --hours'],
] as const)('rejects the admin arguments %j and states the reason', async (args, code, words) => {
  expect(await admin(...args)).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(words) })
})

test.each([
  ['concurrent', '-1'],
  ['concurrent', '1.5'],
  ['seconds', '0'],
  ['seconds', '86401'],
  ['hours', 'many'],
  ['sandbox-ops', ''],
])('rejects the invalid account limit --%s %s', (name, value) => {
  expect(() => readLimits({ [name]: value })).toThrow(`Invalid value "${value}" for --${name}.`)
})
