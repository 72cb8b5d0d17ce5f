/** A saved key is sent only to the address for which it was saved. */
import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { readAddress } from '../../cli/core/address.ts'
import { isSameService, keyIn } from '../../cli/core/saved-keys.ts'
import { clientPath, Home } from './client.ts'
import { startPeer } from './peer.ts'
import { openScreen } from './screen.ts'

const key = (end: string) => `sandlot_live_${'x'.repeat(45)}${end}`
const saved = (home: Home) => parse(readFileSync(home.configFile, 'utf8'))

async function startPeers() {
  const [own, other] = [await startPeer((_, to) => to.end('{}')), await startPeer((_, to) => to.end('{}'))]
  const home = new Home()
  home.writeConfig(
    `base_url = "${own.url}"\napi_key = "${key('home')}"\ntoken = "t"\ntoken_expires_at = "2999-01-01T00:00:00Z"\n`,
  )
  const keysAt = (peer: typeof own) => peer.asked.map(({ headers }) => headers.authorization?.slice(-4))
  return {
    home,
    own,
    other,
    keysAt,
    /** Returns the last characters of all keys that each peer received. */
    async sent(args: string[], env: Record<string, string> = {}) {
      own.asked.length = 0
      other.asked.length = 0
      const ran = await home.run(args, { env })
      return { own: [...new Set(keysAt(own))], other: [...new Set(keysAt(other))], ...ran }
    },
    async [Symbol.asyncDispose]() {
      home[Symbol.dispose]()
      await Promise.all([own[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
    },
  }
}

test.each([
  ['whoami'],
  ['session', 'ls'],
  ['session', 'create'],
  ['exec', '-s', 'sbx_a', '--', 'true'],
  ['exec', '-it', '-s', 'sbx_a', '--', 'sh'],
  ['files', 'view', '-s', 'sbx_a', 'a.txt'],
  ['files', 'get', '-s', 'sbx_a', 'a.txt', '-'],
  ['forward', '-s', 'sbx_a', ':80'],
  ['secrets', 'ls'],
  ['keys', 'ls'],
  ['logout'],
  ['doctor'],
  ['__complete', '--', 'session', 'get', ''],
])(
  'the command `%s %s` sends no saved key to an address from a flag or environment variable',
  async (...words) => {
    await using at = await startPeers()
    const text = readFileSync(at.home.configFile, 'utf8')
    const flag = await at.sent(['--url', at.other.url, ...words])
    at.home.writeConfig(text)
    const variable = await at.sent(words, { SANDLOT_URL: at.other.url })
    for (const { other } of [flag, variable]) expect(other.filter(Boolean)).toEqual([])
  },
)

test('if no key is saved for the address, the error names the address of the saved key', async () => {
  await using at = await startPeers()
  const { code, stderr, json, own, other } = await at.sent(['whoami', '--json'], {
    SANDLOT_URL: at.other.url,
  })
  expect(code).toBe(4)
  expect(json().error).toMatchObject({ code: 'no_api_key', exit_code: 4 })
  expect([own, other]).toEqual([[], []])
  expect(stderr).toContain(`No API key is saved for ${at.other.url}.`)
  expect(stderr).toContain(`is sent only to ${at.own.url}.`)
  expect(stderr).toContain(`\`sandlot login --url ${at.other.url} --profile NAME\``)
  expect(stderr).not.toContain('xxxx')
})

test('the client sends a key from a flag, from the environment, or from a profile with the same address', async () => {
  await using at = await startPeers()
  const env = { SANDLOT_URL: at.other.url }
  const withKey = { ...env, SANDLOT_API_KEY: key('envi') }
  expect(await at.sent(['whoami'], withKey)).toMatchObject({ other: ['envi'] })
  expect(await at.sent(['whoami', '--api-key', key('flag')], env)).toMatchObject({ other: ['flag'] })
  const before = readFileSync(at.home.configFile, 'utf8')
  const profile = (name: string) =>
    `[profiles.${name}]\nbase_url = "${at.other.url}"\napi_key = "${key(name)}"\n`
  at.home.writeConfig(`${before}${profile('work')}`)
  expect(await at.sent(['whoami'], env)).toMatchObject({ own: [], other: ['work'] })
  expect(await at.sent(['whoami', '--url', at.other.url])).toMatchObject({ own: [], other: ['work'] })
  expect(await at.sent(['whoami'])).toMatchObject({ own: ['home'], other: [] })
  // A profile uses only its own key, and sends the key only to its own address.
  const named = ['whoami', '--profile', 'work', '--url', at.own.url]
  expect(await at.sent(named)).toMatchObject({ code: 4, own: [], other: [] })
  const chosen = { SANDLOT_PROFILE: 'work', SANDLOT_URL: at.own.url }
  expect(await at.sent(['whoami'], chosen)).toMatchObject({ code: 4, own: [] })

  at.home.writeConfig(`${before}${profile('work')}${profile('play')}`)
  const several = await at.sent(['whoami'], env)
  expect(several).toMatchObject({ code: 4, own: [], other: [] })
  expect(several.stderr).toContain('work, play.\nSelect a profile with --profile.')
})

test('after `config set-url`, the saved key is sent only to the old address', async () => {
  await using at = await startPeers()
  const moved = await at.sent(['config', 'set-url', at.other.url])
  expect(moved.stderr).toContain(`The saved key …home is sent only to ${at.own.url}.`)
  expect(saved(at.home)).toEqual({ base_url: at.other.url, api_key: key('home'), api_key_url: at.own.url })
  const refused = await at.sent(['whoami'])
  expect(refused).toMatchObject({ code: 4, own: [], other: [] })
  expect(refused.stderr).toContain('`sandlot config set-key`')
  // The key still works for the old address, whether saved again or set by a variable.
  expect(await at.sent(['whoami'], { SANDLOT_URL: `${at.own.url}/` })).toMatchObject({ own: ['home'] })
  await at.sent(['config', 'set-url', at.own.url])
  expect(saved(at.home)).toEqual({ base_url: at.own.url, api_key: key('home') })
  expect(await at.sent(['whoami'])).toMatchObject({ own: ['home'] })

  await at.sent(['config', 'set-url', at.other.url])
  await at.sent(['config', 'set-key', key('newe')])
  expect(saved(at.home)).toEqual({ base_url: at.other.url, api_key: key('newe') })
  expect(await at.sent(['whoami'])).toMatchObject({ other: ['newe'] })
})

test('`config set-key` saves a key for the saved address, not for the address in SANDLOT_URL', async () => {
  await using at = await startPeers()
  const env = { SANDLOT_URL: at.other.url }
  const { stderr, json } = await at.sent(['config', 'set-key', key('newe'), '--json'], env)
  expect(json()).toMatchObject({ base_url: at.own.url })
  expect(stderr).toContain(`is sent only to ${at.own.url}`)
  expect(await at.sent(['whoami'], env)).toMatchObject({ code: 4, other: [] })
  expect(await at.sent(['whoami'])).toMatchObject({ own: ['newe'] })
  await at.sent(['config', 'set-key', key('work'), '--profile', 'work', '--url', at.other.url])
  expect(await at.sent(['whoami'], env)).toMatchObject({ own: [], other: ['work'] })
})

test('`config set-key` saves and reports the address in SANDLOT_URL if no address is saved', async () => {
  await using at = await startPeers()
  at.home.writeConfig('')
  const { stderr } = await at.sent(['config', 'set-key', key('newe')], { SANDLOT_URL: at.other.url })
  expect(stderr).toContain(`The key was saved for ${at.other.url}, the address in SANDLOT_URL.`)
  expect(saved(at.home)).toEqual({ base_url: at.other.url, api_key: key('newe') })
  expect(await at.sent(['whoami'], { SANDLOT_URL: at.own.url })).toMatchObject({ code: 4, own: [] })
})

test('a key that an earlier version saved without an address is not sent until `config set-url` is run', async () => {
  await using at = await startPeers()
  at.home.writeConfig(`api_key = "${key('bare')}"\n`)
  const { code, stderr, other } = await at.sent(['whoami'], { SANDLOT_URL: at.other.url })
  expect({ code, other }).toEqual({ code: 4, other: [] })
  expect(stderr).toContain(`\`sandlot config set-url ${at.other.url}\``)
  const setUrl = await at.sent(['config', 'set-url', at.own.url])
  expect(setUrl.stderr).toContain(`From now on, it is sent to ${at.own.url}.`)
  expect(await at.sent(['whoami'])).toMatchObject({ own: ['bare'] })
})

test('`logout` checks the saved key only at the address for which the key was saved', async () => {
  await using at = await startPeers()
  expect(await at.sent(['logout'], { SANDLOT_URL: at.other.url })).toMatchObject({ own: ['home'], other: [] })
  expect(saved(at.home)).toEqual({ base_url: at.own.url })
})

test('the MCP server sends a saved key only to the service for which the key was saved', async () => {
  await using at = await startPeers()
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`
  const { stdout } = await at.home.run(['mcp', 'serve'], { input, env: { SANDLOT_URL: at.other.url } })
  expect(stdout).toContain('No API key is saved for')
  expect(at.other.asked).toEqual([])
  await at.home.run(['mcp', 'serve'], { input })
  expect(at.keysAt(at.own)).toEqual(['home'])
})

test('`doctor` and `config show` print the address of each saved key', async () => {
  await using at = await startPeers()
  const text = `${readFileSync(at.home.configFile, 'utf8')}[profiles.work]\nbase_url = "https://work.example"\napi_key = "${key('work')}"\n`
  at.home.writeConfig(text)
  const { stdout } = await at.sent(['doctor', '--no-create'])
  expect(stdout).toContain(`…home (${at.home.configFile}) is sent to ${at.own.url}`)
  expect(stdout).toContain(`…work (${at.home.configFile} [profiles.work]) is sent to https://work.example`)
  const elsewhere = await at.sent(['doctor', '--no-create'], { SANDLOT_URL: at.other.url })
  expect(elsewhere).toMatchObject({ code: 4, own: [], other: [] })
  expect(elsewhere.stdout).toContain(`FAIL  key         No API key is saved for ${at.other.url}.`)
  const shown = await at.sent(['config', 'show'], { SANDLOT_URL: at.other.url })
  expect(shown.stdout).toContain(
    `base_url  ${at.other.url}  (SANDLOT_URL)\napi_key   not set  (…home (${at.home.configFile}) is sent to ${at.own.url})\n`,
  )
  for (const { stdout, stderr } of [elsewhere, shown]) expect(stdout + stderr).not.toContain('xxxx')
})

test('the picker prompts for a key if no key is saved for the address', async () => {
  await using at = await startPeers()
  const env = at.home.environment({ SANDLOT_URL: at.other.url })
  using screen = openScreen([process.execPath, clientPath], env)
  await screen.shows('Paste an API key')
  await screen.shows('No API key is saved for')
  expect(at.keysAt(at.other).filter(Boolean)).toEqual([])
})

test.each([
  ['https://sandlot.example', 'https://SANDLOT.example:443/', true],
  ['https://sandlot.example/', 'HTTPS://sandlot.example/behind/a/path', true],
  ['http://localhost:80', 'http://LOCALHOST', true],
  ['https://sandlot.example', 'https://sandlot.example:8443', false],
  ['http://localhost:8080', 'http://localhost:8081', false],
  ['http://localhost:8080', 'http://127.0.0.1:8080', false],
  ['http://localhost', 'https://localhost', false],
  ['http://localhost:443', 'https://localhost', false],
  ['https://sandlot.example', 'https://sandlot.example.', false],
  ['https://sandlot.example', 'https://www.sandlot.example', false],
])('the client treats %s and %s as the same service: %s', (one, other, same) => {
  expect(isSameService(readAddress(one, 'test'), readAddress(other, 'test'))).toBe(same)
})

test('the client ignores a saved key whose address is invalid', () => {
  const api_key = key('home')
  const base_url = 'https://a.example'
  for (const wrong of ['http://sandlot.example', 'https://a@b.example', 5, '']) {
    expect(keyIn({ api_key, base_url: wrong })).toMatchObject({ address: undefined })
    expect(keyIn({ api_key, base_url, api_key_url: wrong })).toMatchObject({ address: undefined })
  }
})
