import { expect, test } from 'vitest'
import { keysOfApi } from '../shared/platform/keys.ts'
import { readSettings } from '../shared/platform/settings.ts'

const needed = {
  DATABASE_URL: 'postgresql://localhost/sandlot',
  REDIS_URL: 'redis://localhost',
  JWT_SECRET: 'x'.repeat(32),
  SECRETS_KEY: 'x'.repeat(32),
}

test('an empty setting takes its default value', () => {
  expect(readSettings({ ...needed, SANDBOX_IMAGE: '' })).toEqual(readSettings(needed))
})

test.each(Object.keys(needed).map((name) => [name, name === 'SECRETS_KEY' ? 'SECRETS_PUBLIC_KEY' : name]))(
  'the server rejects settings without %s',
  (name, told) => {
    expect(() => readSettings({ ...needed, [name]: undefined })).toThrow(`  ${told}: `)
  },
)

test('each kind of process requires only its own keys', () => {
  const { JWT_SECRET: _, ...forWorker } = needed
  expect(readSettings(forWorker, 'worker')).toMatchObject({
    secretsKeys: [needed.SECRETS_KEY],
    jwtSecrets: [],
  })
  expect(() => readSettings({ ...forWorker, SECRETS_KEY: undefined }, 'worker')).toThrow('  SECRETS_KEY: ')
  const { SECRETS_KEY, ...rest } = needed
  const forApi = { ...rest, ...keysOfApi({ SECRETS_KEY }) }
  expect(readSettings(forApi, 'api')).toMatchObject({
    secretsKeys: [],
    rpcKeys: readSettings(needed, 'worker').rpcKeys,
    secretsPublicKey: readSettings(needed, 'worker').secretsPublicKey,
  })
  expect(() => readSettings({ ...forApi, RPC_KEY: undefined }, 'api')).toThrow('  RPC_KEY: ')
})
