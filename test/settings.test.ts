/** What a process does when its operator sets nothing but what has no default. */
import { expect, test } from 'vitest'
import { readSettings } from '../shared/settings.ts'

const needed = {
  DATABASE_URL: 'postgresql://localhost/sandlot',
  REDIS_URL: 'redis://localhost',
  JWT_SECRET: 'x'.repeat(32),
  SECRETS_KEY: 'x'.repeat(32),
}

test('what is not set has the default that the README names', () => {
  expect(readSettings({ ...needed, SANDBOX_IMAGE: '' })).toMatchObject({
    http: { host: '127.0.0.1', port: 8080 },
    internal: { host: '127.0.0.1', port: 9090 },
    driver: 'kubernetes',
    kubernetes: { kubeconfig: undefined, namespace: 'sandlot' },
    sandbox: {
      image: 'debian:bookworm-slim',
      images: ['debian:bookworm-slim'],
      limits: { cpu: '1', memory: '512Mi', disk: '1Gi' },
      requests: { cpu: '50m', memory: '64Mi', disk: '64Mi' },
      pids: 256,
      runtimeClass: undefined,
      maxSeconds: 1800,
      startSeconds: 60,
      egress: 'internet',
    },
    pools: new Map(),
    quotas: { concurrent: 2, hoursPerMonth: 20 },
    rates: {
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

test.each(Object.keys(needed))('%s has no default: without it there is no start', (name) => {
  expect(() => readSettings({ ...needed, [name]: undefined })).toThrow(`  ${name}: `)
})
