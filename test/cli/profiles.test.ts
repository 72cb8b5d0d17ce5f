import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { Home } from './client.ts'
import { startPeer } from './peer.ts'

const key = (end: string) => `sandlot_live_${'x'.repeat(45)}${end}`
const file = `base_url = "https://top.example"
api_key = "${key('topp')}"

# Where I work.
[profiles.work]
base_url = "https://work.example"
api_key = "${key('work')}"

[profiles.bare]
base_url = "https://bare.example"
`

function homeWithProfiles() {
  const home = new Home()
  home.writeConfig(file)
  const show = async (args: string[], env = {}) =>
    (await home.run(['config', 'show', '--json', ...args], { env })).json()
  return { home, show, [Symbol.dispose]: () => home[Symbol.dispose]() }
}

test('settings take precedence in this order: flag, --profile, environment, SANDLOT_PROFILE, top level of the file', async () => {
  using at = homeWithProfiles()
  const file = at.home.configFile
  const env = {
    SANDLOT_URL: 'https://environment.example',
    SANDLOT_API_KEY: key('envi'),
    SANDLOT_SESSION: 'sbx_e',
  }
  const named = { SANDLOT_PROFILE: 'work' }
  const flags = ['--url', 'https://flag.example', '--api-key', key('flag'), '--session', 'sbx_f']
  const settings = (url: string, last: string, urlSource: string, keySource = urlSource) => ({
    base_url: { value: url, source: urlSource },
    api_key: { value: `…${last}`, source: keySource },
  })
  const profiles = ['work', 'bare']
  const work = {
    ...settings('https://work.example', 'work', `${file} [profiles.work]`),
    file,
    profile: 'work',
    profiles,
  }
  const environment = {
    ...settings('https://environment.example', 'envi', 'SANDLOT_URL', 'SANDLOT_API_KEY'),
    session: { value: 'sbx_e', source: 'SANDLOT_SESSION' },
  }

  expect(await at.show([...flags, '--profile', 'work'], env)).toEqual({
    ...work,
    ...settings('https://flag.example', 'flag', '--url', '--api-key'),
    session: { value: 'sbx_f', source: '--session' },
  })
  expect(await at.show(['--profile', 'work'], env)).toEqual({ ...work, session: environment.session })
  expect(await at.show([], { ...env, ...named })).toEqual({ ...work, ...environment })
  expect(await at.show([], named)).toEqual({ ...work, session: null })
  expect(await at.show(['--profile', 'bare'], named)).toMatchObject({ profile: 'bare' })
  const top = {
    ...settings('https://top.example', 'topp', file),
    session: null,
    file,
    profile: null,
    profiles,
  }
  expect(await at.show([])).toEqual(top)
  expect(await at.show([], { SANDLOT_URL: '' })).toEqual(top)
})

test("the settings file's top-level API key is never sent to the address of a profile without a key", async () => {
  using at = homeWithProfiles()
  await using peer = await startPeer((_, response) => response.end('{}'))
  at.home.writeConfig(file.replace('https://bare.example', peer.url))
  const { code, json, stderr } = await at.home.run(['whoami', '--profile', 'bare', '--json'])
  expect(code).toBe(4)
  expect(json().error.code).toBe('no_api_key')
  expect(stderr).toContain('sandlot signup --profile bare')
  expect(peer.asked).toEqual([])
})

test('the error for an unknown profile lists the existing profiles', async () => {
  using at = homeWithProfiles()
  for (const options of [{ args: ['--profile', 'wrok'] }, { args: [], env: { SANDLOT_PROFILE: 'wrok' } }]) {
    const { code, json } = await at.home.run(['whoami', '--json', ...options.args], {
      env: options.env ?? {},
    })
    expect(code).toBe(2)
    expect(json().error).toMatchObject({ code: 'no_profile', profiles: ['work', 'bare'] })
  }
  expect(await at.home.run(['whoami', '--profile', 'a.b'])).toMatchObject({ code: 2 })
})

test('`config set-url` and `config set-key` change only the selected profile', async () => {
  using at = homeWithProfiles()
  await at.home.run(['config', 'set-url', '--profile', 'work', 'https://moved.example'])
  expect(readFileSync(at.home.configFile, 'utf8')).toBe(
    file.replace(
      'base_url = "https://work.example"',
      'api_key_url = "https://work.example"\nbase_url = "https://moved.example"',
    ),
  )
  await at.home.run(['config', 'set-key', '--profile', 'bare', key('bare')])
  const set = await at.home.run(['config', 'set-url', 'https://fresh.example', '--json'], {
    env: { SANDLOT_PROFILE: 'fresh' },
  })
  expect(set.json()).toMatchObject({ profile: 'fresh' })
  expect(parse(readFileSync(at.home.configFile, 'utf8'))).toEqual({
    base_url: 'https://top.example',
    api_key: key('topp'),
    profiles: {
      work: {
        base_url: 'https://moved.example',
        api_key: key('work'),
        api_key_url: 'https://work.example',
      },
      bare: { base_url: 'https://bare.example', api_key: key('bare') },
      fresh: { base_url: 'https://fresh.example' },
    },
  })
  expect(readFileSync(at.home.configFile, 'utf8')).toContain('# Where I work.')
})

test.each([
  ['an inline table', 'profiles = { work = { base_url = "https://work.example" } }\n'],
  ['dotted keys', 'profiles.work.base_url = "https://work.example"\n'],
  ['a quoted name', '[profiles."work"]\nbase_url = "https://work.example"\n'],
])('`config set-key` can change a profile written as %s', async (_, text) => {
  using home = new Home()
  home.writeConfig(text)
  await home.run(['config', 'set-key', '--profile', 'work', key('abcd')])
  expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({
    profiles: { work: { base_url: 'https://work.example', api_key: key('abcd') } },
  })
})

test('`mcp init` writes an entry that starts the server with the selected profile', async () => {
  using at = homeWithProfiles()
  const args = ['mcp', 'init', 'cursor', '--print', '--portable', '--json', '--profile', 'work']
  const { json } = await at.home.run(args)
  expect(json().mcpServers.sandlot).toMatchObject({
    command: 'sandlot',
    args: ['mcp', 'serve', '--profile', 'work'],
  })
})
