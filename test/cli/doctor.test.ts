import { chmodSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { openRelay } from '../support/relay.ts'
import { shareWorld } from '../support/shared.ts'
import { makeCertificate } from './certificate.ts'
import { Home } from './client.ts'
import { startPeer } from './peer.ts'
import { makeUsers } from './users.ts'

const world = shareWorld()
const { newUser } = makeUsers(world)

type User = Awaited<ReturnType<typeof newUser>>

interface Check {
  name: string
  ok: boolean
  detail: string
  ms: number
  next: string | null
}

const namesOf = (checks: Check[]) => checks.map(({ name, ok }) => (ok ? name : `${name} FAILED`))

const activeOf = async (user: User) =>
  (await user.run(['session', 'ls', '--json'])).json().data as { name: string }[]

function passOn(change: (headers: { date: string }) => void, tls?: { key: string; cert: string }) {
  const pass = async ({ url, method, headers }: IncomingMessage, response: ServerResponse) => {
    const { authorization = '' } = headers
    const answer = await fetch(`${world.url()}${url}`, { method: method!, headers: { authorization } })
    const { date = '', 'content-type': type = '' } = Object.fromEntries(answer.headers)
    const kept = { date, 'content-type': type }
    change(kept)
    response.writeHead(answer.status, kept).end(await answer.text())
  }
  return startPeer((request, response) => void pass(request, response), tls)
}

test('`doctor` reports each passed check with its duration and leaves no session behind', async () => {
  using user = await newUser()
  const { stdout, stderr, code } = await user.run(['doctor'])
  expect(stderr).toBe('')
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  const checks = 'settings address key connection service account clock create exec files destroy'
  expect(lines.map((line) => line.split(/\s+/, 2))).toEqual(checks.split(' ').map((name) => ['ok', name]))
  for (const line of lines) expect(line).toMatch(/ \(\d+ ms\)$/)
  expect(stdout).toContain(`${world.url()}, from ${user.home.configFile}`)
  expect(stdout).toContain(user.email)
  expect(stdout).not.toContain('sandlot_live_')
  expect(await activeOf(user)).toEqual([])
  // With an idempotency key, the command can be retried safely.
  const [exec] = await world.db.query('select idempotency_key from exec')
  expect(exec).toEqual({ idempotency_key: expect.stringMatching(/./) })
})

test('`doctor --json` prints one object, and `doctor --no-create` creates no session', async () => {
  using user = await newUser()
  const { json, code } = await user.run(['doctor', '--json', '--no-create'])
  expect(code).toBe(0)
  const clock = { name: 'clock', ok: true, detail: expect.any(String), ms: expect.any(Number), next: null }
  expect(json()).toMatchObject({ ok: true, checks: expect.arrayContaining([clock]) })
  expect(json().checks.at(-1)).toEqual(clock)
  const all = await user.run(['session', 'ls', '--all', '--json'])
  expect(all.json().data).toEqual([])
})

test('`doctor` fails if other users can read the settings file, but still runs the other checks', async () => {
  using user = await newUser()
  chmodSync(user.home.configFile, 0o644)
  const { json, code } = await user.run(['doctor', '--json', '--no-create'])
  expect(code).toBe(1)
  const { ok, checks } = json()
  expect(ok).toBe(false)
  expect(checks[0]).toMatchObject({ name: 'settings', ok: false, next: `chmod 600 ${user.home.configFile}` })
  expect(checks.at(-1)).toMatchObject({ name: 'clock', ok: true })
})

test('`doctor` reports a malformed settings file once and runs the checks that do not need the file', async () => {
  using home = new Home()
  home.writeConfig('base_url = "https://a.example')
  const checksOf = async (env: Record<string, string>) => {
    const { json, code } = await home.run(['doctor', '--json'], { env })
    return { code, names: namesOf(json().checks), next: json().checks[0].next }
  }
  const next = expect.stringMatching(/TOML.* Fix or remove the file\.$/)
  expect(await checksOf({})).toEqual({ code: 2, names: ['settings FAILED'], next })
  expect(await checksOf({ SANDLOT_URL: 'http://127.0.0.1:1', SANDLOT_API_KEY: 'sandlot_live_x' })).toEqual({
    code: 2,
    names: ['settings FAILED', 'address', 'key', 'connection FAILED'],
    next,
  })
})

test('`doctor` reports a missing settings file without failing', async () => {
  using home = new Home()
  const env = { SANDLOT_URL: 'http://127.0.0.1:1', SANDLOT_API_KEY: 'sandlot_live_x' }
  const { checks } = (await home.run(['doctor', '--json'], { env })).json()
  expect(checks[0]).toMatchObject({ name: 'settings', ok: true, detail: `${home.configFile} does not exist` })
})

test.each([
  ['no address', { SANDLOT_URL: '' }, 'address', 2],
  ['an address that sends the key in cleartext', { SANDLOT_URL: 'http://example.com' }, 'address', 2],
  ['an unknown host', { SANDLOT_URL: 'https://no-such-host.invalid' }, 'name', 8],
  ['a closed port', { SANDLOT_URL: 'http://127.0.0.1:1' }, 'connection', 8],
  ['an unknown key', { SANDLOT_API_KEY: `sandlot_live_${'x'.repeat(49)}` }, 'account', 4],
])('`doctor` reports %s with a remedy and the matching exit code', async (_, env, name, exitCode) => {
  using user = await newUser()
  const before = { SANDLOT_URL: world.url(), SANDLOT_API_KEY: 'sandlot_live_x' }
  if (name === 'address') writeFileSync(user.home.configFile, 'api_key = "sandlot_live_x"\n')
  const options = { env: name === 'account' ? env : { ...before, ...env } }
  const { json, code } = await user.run(['doctor', '--json'], options)
  const failed = (json().checks as Check[]).filter(({ ok }) => !ok)
  expect(namesOf(failed)).toEqual([`${name} FAILED`])
  expect(failed[0]!.next).not.toBeNull()
  expect(code).toBe(exitCode)
  const { stdout } = await user.run(['doctor'], options)
  expect(stdout).toContain(`FAIL  ${name}`)
  expect(stdout).toContain(failed[0]!.next!.split('\n')[0])
})

test('`doctor` detects a server that is not Sandlot', async () => {
  using user = await newUser()
  await using peer = await startPeer((_, response) => response.end('<html>'))
  const { json, code } = await user.run(['doctor', '--json'], { env: user.home.through(peer.url) })
  expect(namesOf(json().checks)).toEqual(['settings', 'address', 'key', 'connection', 'service FAILED'])
  expect(code).toBe(8)
})

test('`doctor` detects a wrong local clock', async () => {
  using user = await newUser()
  await using peer = await passOn((headers) => {
    headers.date = new Date(Date.now() - 600_000).toUTCString()
  })
  const { stdout, code } = await user.run(['doctor', '--no-create'], { env: user.home.through(peer.url) })
  expect(stdout).toMatch(/FAIL {2}clock +This machine's clock is (59\d|60\d) s ahead of the service's/)
  expect(code).toBe(1)
})

test('`doctor` rejects an untrusted certificate and describes a trusted one', async () => {
  using user = await newUser()
  const certificate = makeCertificate()
  await using peer = await passOn(() => {}, certificate)
  const args = ['doctor', '--no-create']
  const env = user.home.through(peer.url)
  const refused = await user.run(args, { env })
  expect(refused.stdout).toMatch(/FAIL {2}certificate .*not trusted[\s\S]*NODE_EXTRA_CA_CERTS/)
  expect(refused.code).toBe(8)
  const file = join(user.home.folder, 'authority.pem')
  writeFileSync(file, certificate.cert)
  const trusted = await user.run(args, { env: { ...env, NODE_EXTRA_CA_CERTS: file } })
  expect(trusted.stdout).toMatch(/ok {4}certificate {2}TLSv1.3, from sandlot test, valid until /)
  expect(trusted).toMatchObject({ stdout: expect.not.stringContaining('FAIL'), code: 0 })
})

test('`doctor` reports an exhausted quota and exits with the matching code', async () => {
  using user = await newUser()
  await user.run(['session', 'create', '--async'])
  await user.run(['session', 'create', '--async'])
  const { stdout, code } = await user.run(['doctor'])
  expect(stdout).toContain('FAIL  create')
  expect(stdout).toContain('sandlot session rm')
  expect(code).toBe(6)
  expect(await activeOf(user)).toHaveLength(2)
})

test('`doctor` destroys its session when it is interrupted', async () => {
  using user = await newUser()
  await using line = await openLineWithoutExec(world.url())
  const doctor = user.run(['doctor'], {
    env: user.home.through(line.url),
    onStart: (child) => void line.asked.then(() => child.kill('SIGINT')),
  })
  await line.asked
  expect(await doctor).toMatchObject({ code: 130, stderr: expect.stringContaining('Interrupted') })
  await eventually(async () => (await activeOf(user)).length === 0, 5_000)
  const all = await user.run(['session', 'ls', '--all', '--json'])
  expect(all.json().data).toMatchObject([{ name: 'sandlot-doctor', destroy_reason: 'requested' }])
})

/** A relay that drops requests to run a command. */
async function openLineWithoutExec(to: string) {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const { hostname, port } = new URL(to)
  const filter = () => {
    let isExec = false
    return (bytes: Buffer) => {
      isExec ||= /^POST \S+\/exec /.test(bytes.toString('latin1'))
      if (isExec) resolve()
      return !isExec
    }
  }
  const from = { host: hostname, port: Number(port) }
  const relay = await openRelay(from, { host: '127.0.0.1', port: 0 }, { filter })
  return { url: `http://127.0.0.1:${relay.port}`, asked, [Symbol.asyncDispose]: relay.close }
}
