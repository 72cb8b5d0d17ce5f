import { describe, expect, test } from 'vitest'
import { makeHostCheck } from '../../api/http/allowed-hosts.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import type { Problem } from '../../shared/platform/problem.ts'
import { readSettings, SettingsError } from '../../shared/platform/settings.ts'
import { pathOf } from '../support/account.ts'
import { send } from '../support/http.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({
  workers: 0,
  env: { ALLOWED_HOSTS: 'sandlot.example,*.sandlot.example,other.example:8443' },
})

const ask = (headers: Record<string, string>, { method, path }: Pick<Endpoint, 'method' | 'path'>) =>
  send(world.url() + pathOf({ path }), { method, headers })
const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  'sec-websocket-version': '13',
}

test.each(Object.entries<Endpoint>(endpoints))(
  'the %s route rejects an unknown host name and a foreign origin',
  async (_, endpoint) => {
    const more: Record<string, string> = endpoint.rawReply === 'websocket' ? upgrade : {}
    const rebound = await ask({ ...more, host: 'evil.example' }, endpoint)
    expect([rebound.status, JSON.parse(rebound.text).code]).toEqual([421, 'host_not_allowed'])
    expect(JSON.parse(rebound.text).detail).toContain('ALLOWED_HOSTS')
    const page = await ask({ ...more, origin: 'https://evil.example' }, endpoint)
    expect([page.status, JSON.parse(page.text).code]).toEqual([403, 'origin_not_allowed'])
  },
)

test('returns 421 for a request whose Host header is not allowed', async () => {
  const { status } = await ask({ host: 'evil.example' }, { method: 'GET', path: '/nothing' })
  expect(status).toBe(421)
})

test('accepts the configured host names, and any host name for health checks', async () => {
  for (const host of [
    'sandlot.example',
    'SANDLOT.example:443',
    'eu.sandlot.example',
    'other.example:8443',
    'localhost:1',
  ]) {
    expect((await ask({ host }, endpoints.getOpenApi)).status, host).toBe(200)
  }
  const { status } = await send(`${world.apis[0]!.internalUrl}/healthz`, {
    headers: { host: '10.1.2.3:9090' },
  })
  expect(status).toBe(200)
})

describe('host and origin checks', () => {
  const codeOf = (allowed: string[], own: string, headers: { host?: string; origin?: string }) => {
    try {
      makeHostCheck(allowed, own)(headers)
      return 'ok'
    } catch (error) {
      return (error as Problem).code
    }
  }

  test.each([
    [[], '127.0.0.1', 'localhost', 'ok'],
    [[], '127.0.0.1', 'localhost:8080', 'ok'],
    [[], '127.0.0.1', 'app.localhost', 'ok'],
    [[], '127.0.0.1', '127.9.9.9:1', 'ok'],
    [[], '127.0.0.1', '[::1]:8080', 'ok'],
    [[], '::', '[0:0:0:0:0:0:0:1]', 'ok'],
    [[], '127.0.0.1', '', 'host_not_allowed'],
    [[], '127.0.0.1', undefined, 'host_not_allowed'],
    [[], '127.0.0.1', '10.0.0.1', 'host_not_allowed'],
    [[], '10.0.0.1', '10.0.0.1:8080', 'ok'],
    [[], 'fd00::1', '[fd00::1]:8080', 'ok'],
    [[], '0.0.0.0', '0.0.0.0', 'host_not_allowed'],
    [[], '127.0.0.1', '127.0.0.1.evil.example', 'host_not_allowed'],
    [[], '127.0.0.1', 'notlocalhost', 'host_not_allowed'],
    [[], '127.0.0.1', 'localhost@evil.example', 'host_not_allowed'],
    [[], '127.0.0.1', 'localhost/evil.example', 'host_not_allowed'],
    [[], '127.0.0.1', 'localhost:99999', 'host_not_allowed'],
    [['a.example'], '127.0.0.1', 'A.EXAMPLE:1', 'ok'],
    [['A.example'], '127.0.0.1', 'a.example', 'ok'],
    [['a.example'], '127.0.0.1', 'b.a.example', 'host_not_allowed'],
    [['*.a.example'], '127.0.0.1', 'b.a.example', 'ok'],
    [['*.a.example'], '127.0.0.1', 'a.example', 'host_not_allowed'],
    [['*.a.example'], '127.0.0.1', 'evila.example', 'host_not_allowed'],
    [['a.example:1'], '127.0.0.1', 'a.example:1', 'ok'],
    [['a.example:1'], '127.0.0.1', 'a.example:2', 'host_not_allowed'],
    [['*'], '127.0.0.1', 'whatever.example', 'ok'],
  ])(
    'with the allowed hosts %j and the listen address %s, the Host header %j results in %s',
    (allowed, own, host, code) => {
      expect(codeOf(allowed, own, host === undefined ? {} : { host })).toBe(code)
    },
  )

  test.each([
    ['https://evil.example', 'localhost', 'origin_not_allowed'],
    ['http://localhost.evil.example', 'localhost', 'origin_not_allowed'],
    ['null', 'localhost', 'origin_not_allowed'],
    ['', 'localhost', 'origin_not_allowed'],
    ['file://', 'localhost', 'origin_not_allowed'],
    ['https://a.example, https://evil.example', 'a.example', 'origin_not_allowed'],
    ['http://localhost:5173', 'localhost', 'ok'],
    ['http://127.0.0.1', 'localhost', 'ok'],
    ['https://a.example', 'a.example', 'ok'],
    ['https://a.example:8443', 'localhost', 'ok'],
    ['https://evil.example', 'a.example', 'origin_not_allowed'],
  ])('the Origin header %j with the Host header %s results in %s', (origin, host, code) => {
    expect(codeOf(['a.example'], '127.0.0.1', { origin, host })).toBe(code)
  })

  test('with all hosts allowed, accepts only an https origin that matches the host', () => {
    const host = 'any.example'
    expect(codeOf(['*'], '127.0.0.1', { host, origin: `https://${host}` })).toBe('ok')
    expect(codeOf(['*'], '127.0.0.1', { host, origin: `http://${host}` })).toBe('origin_not_allowed')
  })
})

test.each(['https://a.example', 'a.example/x', '*.', 'a b', '**.example'])(
  'rejects the invalid entry %j in the list of allowed hosts',
  (text) => {
    const env = { DATABASE_URL: 'x', REDIS_URL: 'x', JWT_SECRET: 'x'.repeat(32), SECRETS_KEY: 'x'.repeat(32) }
    expect(() => readSettings({ ...env, ALLOWED_HOSTS: text })).toThrow(SettingsError)
  },
)
