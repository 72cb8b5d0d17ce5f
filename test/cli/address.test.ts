import { describe, expect, test } from 'vitest'
import { readAddress } from '../../cli/core/address.ts'
import { Settings } from '../../cli/core/settings.ts'
import { Home } from './client.ts'

const taken: [typed: string, meant: string][] = [
  ['https://api.example.com', 'https://api.example.com'],
  ['https://api.example.com/', 'https://api.example.com'],
  ['https://api.example.com:8443', 'https://api.example.com:8443'],
  ['https://api.example.com:443', 'https://api.example.com'],
  ['HTTPS://API.Example.COM', 'https://api.example.com'],
  ['https://example.com/sandlot/', 'https://example.com/sandlot'],
  ['https://10.0.0.1', 'https://10.0.0.1'],
  ['https://[::1]:8443', 'https://[::1]:8443'],
  ['http://localhost', 'http://localhost'],
  ['http://localhost:8080', 'http://localhost:8080'],
  ['http://localhost:8080/', 'http://localhost:8080'],
  ['http://localhost/prefix', 'http://localhost/prefix'],
  ['http://localhost/v10', 'http://localhost/v10'],
  ['HTTP://LOCALHOST:8080', 'http://localhost:8080'],
  ['http://127.0.0.1', 'http://127.0.0.1'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
]

const refused = [
  // cleartext to a remote host
  'http://example.com',
  'HTTP://example.com',
  'hTTp://example.com:443',
  'http://localhost.example.com',
  'http://localhost.',
  'http://xlocalhost',
  'http://127.0.0.1.example.com',
  'http://127.0.0.2',
  'http://10.0.0.1',
  'http://0.0.0.0:8080',
  'http://[::1]:8080',
  'http://[::ffff:127.0.0.1]:8080',
  // parsed as 127.0.0.1 or localhost, but spelled differently
  'http://0x7f.1',
  'http://2130706433',
  'http://017700000001',
  'http://127.1',
  'http://127.0.1',
  'http://127.0.0.01',
  'http://127.0.0.1.',
  'http://%6cocalhost',
  'http://ｌocalhost',
  'http://127。0。0。1',
  // a different host after a user name
  'http://localhost@example.com',
  'http://localhost:8080@example.com',
  'http://user@localhost',
  'https://user:password@example.com',
  'https://@example.com',
  'http://@localhost',
  // malformed URLs that the parser would correct
  'http:evil',
  'http:localhost',
  'http:/localhost',
  'http:\\\\localhost',
  'http://localhost\\@example.com',
  'http:///localhost',
  'https:example.com',
  'https:///example.com',
  ' http://localhost',
  'https://example.com ',
  '\thttp://example.com',
  'ht\ntp://example.com',
  'http://local\thost',
  // other schemes and incomplete URLs
  'localhost:8080',
  'example.com',
  '//example.com',
  'ftp://example.com',
  'file:///etc/passwd',
  'ws://localhost',
  'javascript:alert(1)',
  'https://',
  'http://',
  'https://:443',
  'http://localhost:99999',
  'https://example.com?a=b',
  'https://example.com/#a',
  'http://localhost?',
  'http://localhost#',
  'https://example.com/v1',
  'https://example.com/sandlot/v1/account',
]

describe('accepted addresses', () => {
  test.each(taken)('the client accepts the address %s and normalizes it to %s', (typed, meant) => {
    expect(readAddress(typed, 'test')).toBe(meant)
    expect(new URL(`${meant}/v1/account`).href).toBe(`${meant}/v1/account`)
  })
})

describe('rejected addresses', () => {
  test.each(refused.map((typed) => [typed]))(
    'the client rejects the address %j in a flag, the environment or the settings file',
    async (typed) => {
      using home = new Home()
      home.writeConfig(`base_url = ${JSON.stringify(typed)}\n`)
      const environment = home.environment()
      const sources = {
        '--url': new Settings({ url: typed }, environment),
        SANDLOT_URL: new Settings({}, { ...environment, SANDLOT_URL: typed }),
        [home.configFile]: new Settings({}, environment),
      }
      for (const [source, settings] of Object.entries(sources)) {
        const error = await settings.baseUrl().catch((thrown) => thrown)
        expect(error).toMatchObject({ code: 'address_refused', exitCode: 2 })
        expect(error.message).toContain(source)
      }
    },
  )

  test('the client sends nothing to a rejected address and exits with code 2', async () => {
    using home = new Home()
    const typed = 'http://0x7f.1'
    home.writeConfig(`base_url = "${typed}"\napi_key = "sandlot_live_x"\n`)
    const key = { SANDLOT_API_KEY: 'sandlot_live_x' }
    const stderr = expect.stringContaining('is not allowed')
    const runs = await Promise.all([
      home.run(['whoami', '--url', typed], { env: key }),
      home.run(['whoami'], { env: { ...key, SANDLOT_URL: typed } }),
      home.run(['whoami']),
      home.run(['config', 'set-url', typed]),
      home.run(['signup', '--url', typed, '--email', 'a@example.com', '--password-stdin'], { input: 'x' }),
    ])
    for (const ran of runs) expect(ran).toMatchObject({ code: 2, stdout: '', stderr })
    const shown = await home.run(['config', 'show'])
    expect(shown).toMatchObject({ code: 2, stderr })
    expect(shown.stdout).toMatch(/^base_url +refused +\(.*\)\napi_key .*\nsession +not set\nfile /)
    const { error } = (await home.run(['config', 'show', '--json', '--session', 'sbx_a'])).json()
    expect(error).toMatchObject({ code: 'address_refused', base_url: null, session: { value: 'sbx_a' } })
  })

  test.each([
    'https://user:hunter2@example.com',
    'https://user:hunt/hunter2@example.com',
    'https:\\\\user:hunter2@example.com',
    'user:hunter2@example.com',
    'https://hunter2@',
  ])('the error for the address %s does not show the password', (typed) => {
    expect(() => readAddress(typed, 'test')).toThrow('…@')
    expect(() => readAddress(typed, 'test')).not.toThrow('hunter2')
  })

  test.each([
    ['https://example.com/v1', '/v1', 'https://example.com'],
    ['https://example.com/v1/', '/v1', 'https://example.com'],
    ['http://localhost:8080/sandlot/v1/docs', '/v1/docs', 'http://localhost:8080/sandlot'],
  ])('the error for the address %s names the part of the path to remove', (typed, part, meant) => {
    const refused = expect.objectContaining({
      message: expect.stringContaining(`must not include ${part},`),
      hint: `Use ${meant} instead.`,
    })
    expect(() => readAddress(typed, 'test')).toThrow(refused)
  })
})
