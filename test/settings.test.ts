/** What a process does when its operator sets nothing but what has no default. */
import { expect, test } from 'vitest'
import { keysOfApi } from '../shared/platform/keys.ts'
import { readSettings } from '../shared/platform/settings.ts'

const needed = {
  DATABASE_URL: 'postgresql://localhost/sandlot',
  REDIS_URL: 'redis://localhost',
  JWT_SECRET: 'x'.repeat(32),
  SECRETS_KEY: 'x'.repeat(32),
}

test('what is not set has the default that docs/settings.md names', () => {
  expect(readSettings({ ...needed, SANDBOX_IMAGE: '' })).toMatchObject({
    http: { host: '127.0.0.1', port: 8080 },
    internal: { host: '127.0.0.1', port: 9090 },
    calls: { host: '127.0.0.1', port: 9443 },
    driver: 'kubernetes',
    kubernetes: { kubeconfig: undefined, namespace: 'sandlot' },
    sandbox: {
      image: 'debian:bookworm-slim',
      images: ['debian:bookworm-slim'],
      limits: { cpu: '1', memory: '512Mi', disk: '1Gi' },
      requests: { cpu: '50m', memory: '64Mi', disk: '64Mi' },
      pids: 256,
      runtimeClass: undefined,
      hostUsers: true,
      maxSeconds: 1800,
      startSeconds: 60,
      egress: 'internet',
    },
    pools: new Map(),
    quotas: { concurrent: 2, hoursPerMonth: 20 },
    rates: {
      connections: 600,
      sandbox_ops: 120,
      sandbox_lifecycle: 20,
      signup: 5,
      login: 10,
      login_account: 10,
      mcp: 300,
      reads: 600,
      changes: 60,
    },
    trustedProxies: [],
    password: { logN: 17, atOnce: 2 },
    sweepSeconds: 10,
  })
})

test.each(Object.keys(needed).map((name) => [name, name === 'SECRETS_KEY' ? 'SECRETS_PUBLIC_KEY' : name]))(
  '%s has no default: without it there is no start',
  (name, told) => {
    expect(() => readSettings({ ...needed, [name]: undefined })).toThrow(`  ${told}: `)
  },
)

test('each kind of process needs its own keys, and no other', () => {
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
    callsKeys: readSettings(needed, 'worker').callsKeys,
    secretsPublicKey: readSettings(needed, 'worker').secretsPublicKey,
  })
  expect(() => readSettings({ ...forApi, CALLS_KEY: undefined }, 'api')).toThrow('  CALLS_KEY: ')
})
