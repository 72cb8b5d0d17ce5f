/**
 * Two concurrent requests for an object must have the same result as in some sequential order. The soak runs
 * many rounds, and on a cluster also pairs that need a pod each.
 */
import { randomUUID } from 'node:crypto'
import { describe, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import type { Account } from '../support/account.ts'
import { hasCluster } from '../support/cluster.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import { send } from '../support/http.ts'
import { type Kind, responseOf, tryPairs } from '../support/pairs.ts'
import { shareSandbox, shareWorld } from '../support/shared.ts'
import type { World } from '../support/world.ts'

const roomForPairs = { QUOTA_CONCURRENT_SANDBOXES: '20' }
const rounds = isSoak ? 20 : 1

// Concurrent, because the accounts and worlds are separate.
describe('two concurrent requests for an account or a sandbox', { concurrent: true }, () => {
  describe('on the local driver', { concurrent: false }, testOutside)
})

describeOnBothDriversAtOnce('two concurrent requests inside a sandbox', (driver) => {
  const sandbox = shareSandbox({ driver })
  test('two concurrent requests for an existing secret take effect one after the other', () =>
    tryPairs(secrets(sandbox, true), { rounds, concurrency: 2 }))
  test('two concurrent requests for a missing secret take effect one after the other', () =>
    tryPairs(secrets(sandbox, false), { rounds, concurrency: 2 }))
  test('two concurrent commands with the same Idempotency-Key behave as if sent one after the other', () =>
    tryPairs(keyedCommands(sandbox), { rounds, concurrency: 2 }))
})

describe.skipIf(!isSoak || !hasCluster)('two concurrent requests on Kubernetes', () => {
  const world = shareWorld({ driver: 'kubernetes', env: roomForPairs })
  test('two concurrent requests for a sandbox behave as if one ran after the other', () =>
    tryPairs(sandboxes(world), { rounds: 3, concurrency: 4 }))
})

function testOutside(): void {
  const world = shareWorld({ env: roomForPairs })
  test('two concurrent requests for an API key take effect one after the other', () =>
    tryPairs(apiKeys(world), { rounds, concurrency: 4 }))
  test('two concurrent requests for an account take effect one after the other', () =>
    tryPairs(accounts(world), { rounds, concurrency: 4 }))
  // Each change waits until no process has the previous list cached.
  test('two concurrent requests for the allowlist take effect one after the other', () =>
    tryPairs(allowlists(world), { rounds, concurrency: 12 }))
  test('two concurrent creates with the same Idempotency-Key behave as if sent one after the other', () =>
    tryPairs(keyedCreates(world), { rounds, concurrency: 2 }))
  test('two concurrent requests for the name of an active sandbox take effect one after the other', () =>
    tryPairs(namedSandboxes(world, true), { rounds, concurrency: 2 }))
  test('two concurrent requests for an unused sandbox name take effect one after the other', () =>
    tryPairs(namedSandboxes(world, false), { rounds, concurrency: 2 }))
  test('two concurrent requests for a sandbox take effect one after the other, even if one destroys the sandbox', () =>
    tryPairs(sandboxes(world), { rounds, concurrency: 4 }))
}

const apiKeys = (world: World): Kind<Account> => {
  const params = ({ keyId: key_id }: Account) => ({ key_id })
  const rotate = (overlap_seconds: number) => (account: Account) =>
    responseOf(() => account.call('rotateApiKey', { params: params(account), body: { overlap_seconds } }))
  const list = async (account: Account) => {
    const { body } = await account.call('listApiKeys')
    return body.data.map(({ id, expires_at }) => (id === account.keyId ? 'old' : 'new') + endOf(expires_at))
  }
  return {
    make: () => world.account(),
    operations: {
      list,
      create: (account) => responseOf(() => account.call('createApiKey', { body: {} })),
      'rotate with an overlap': rotate(3600),
      'rotate without an overlap': rotate(0),
      revoke: (account) => responseOf(() => account.call('revokeApiKey', { params: params(account) })),
    },
    readState: list,
  }
}

const endOf = (expiresAt: string | null) =>
  expiresAt === null ? '' : Date.parse(expiresAt) > Date.now() ? ', ends later' : ', has ended'

const accounts = (world: World): Kind<Account> => {
  const logInFrom = (from: string) => async (account: Account) => {
    const { email, password } = account
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ email, password })
    const sent = { method: 'POST', headers, body, from }
    return (await send(`${world.url()}/v1/auth/login`, sent)).status
  }
  const changeTo = (new_password: string) => (account: Account) => {
    const body = { current_password: account.password, new_password }
    return responseOf(() => account.call('changePassword', { body }))
  }
  return {
    make: () => world.account(),
    operations: {
      'log in from one address': logInFrom('127.0.0.2'),
      'log in from another': logInFrom('127.0.0.3'),
      'change the password': changeTo('another password'),
      'change it otherwise': changeTo('yet another password'),
      'end all sessions': (account) => responseOf(() => account.call('endSessions')),
    },
    readState: async ({ id }) =>
      await world.db.query('select login_addresses, session_generation from account where id = ?', [id]),
  }
}

const allowlists = (world: World): Kind<Account> => {
  const set = (command: string) => (account: Account) =>
    responseOf(
      () => account.call('setAllowlist', { body: { commands: [command] } }),
      ({ body }) => body.commands,
    )
  const get = async (account: Account) => (await account.call('getAllowlist')).body.commands
  return {
    make: () => world.account(),
    operations: {
      get,
      'set one': set('git status'),
      'set another': set('npm test'),
      clear: (account) => responseOf(() => account.call('clearAllowlist')),
      check: async (account) =>
        (await account.call('checkAllowlist', { body: { command: ['git', 'status'] } })).body,
    },
    readState: get,
  }
}

const keyedCreates = (world: World): Kind<Account> => {
  const key = { 'idempotency-key': 'the same' }
  const create = (name: string) => (account: Account) =>
    responseOf(
      () => account.call('createSandbox', { headers: key, body: { name } }),
      ({ body }) => body.id,
    )
  const list = async (account: Account) => {
    const { body } = await account.call('listSandboxes')
    return body.data.map(({ id, name }) => ({ id, name }))
  }
  return {
    make: () => world.account(),
    operations: { 'create one': create('one'), 'create another': create('another') },
    readState: list,
    end: destroyAll,
  }
}

async function destroyAll(account: Account): Promise<void> {
  const { body } = await account.call('listSandboxes', { query: { state: 'active' } })
  await Promise.all(body.data.map(({ id }) => account.call('destroySandbox', { params: { id } })))
}

interface Owned {
  account: Account
  params: { id: string }
}

const namedSandboxes = (world: World, isActive: boolean): Kind<Owned> => {
  const name = 'web'
  const getOrCreate =
    (env: Record<string, string>) =>
    ({ account }: Owned) =>
      responseOf(
        () => account.call('getOrCreateSandbox', { params: { name }, body: { env } }),
        ({ status, body }) => ({ status, id: body.id, name: body.name }),
      )
  const changes = ['destroy', 'rename']
  return {
    make: async () => {
      const account = await world.account()
      const params = { id: '' }
      if (isActive) params.id = (await account.call('createSandbox', { body: { name } })).body.id
      return { account, params }
    },
    // Other pairs are covered by `sandboxes`.
    isTried: (names) =>
      names.some((each) => each.startsWith('get')) &&
      (isActive || !names.some((each) => changes.includes(each))),
    operations: {
      'get or create': getOrCreate({}),
      'get or create with a variable': getOrCreate({ A: 'a' }),
      create: ({ account }) =>
        responseOf(
          () => account.call('createSandbox', { body: { name } }),
          ({ body }) => body.id,
        ),
      destroy: ({ account, params }) => responseOf(() => account.call('destroySandbox', { params })),
      rename: ({ account, params }) =>
        responseOf(() => account.call('updateSandbox', { params, body: { name: 'other' } })),
    },
    readState: async ({ account }) => {
      const { body } = await account.call('listSandboxes')
      return body.data.map(({ id, name, state }) => ({ id, name, state }))
    },
    end: ({ account }) => destroyAll(account),
  }
}

const sandboxes = (world: World): Kind<Owned> => {
  const stateOf = async ({ account, params }: Owned) => {
    const { body } = await account.call('getSandbox', { params })
    return { state: body.state, reason: body.destroy_reason }
  }
  let owner: Promise<Account> | undefined
  return {
    make: async () => {
      owner ??= world.account()
      const account = await owner
      return { account, params: { id: (await account.call('createSandbox', { body: {} })).body.id } }
    },
    // Excludes commands that a destroy or a reset would kill, because they start earlier.
    isTried: (names) => names.includes('destroy') || (names[0] === 'reset' && names[1] === 'reset'),
    operations: {
      get: stateOf,
      destroy: ({ account, params }) =>
        responseOf(
          () => account.call('destroySandbox', { params }),
          ({ body }) => body.destroy_reason,
        ),
      update: ({ account, params }) =>
        responseOf(() => account.call('updateSandbox', { params, body: { name: 'new' } })),
      reset: ({ account, params }) => responseOf(() => account.call('resetSandbox', { params })),
      'run a command': ({ account, params }) =>
        responseOf(() => account.call('execCommand', { params, body: { command: ['true'] } })),
      'write a file': ({ account, params }) =>
        responseOf(() => account.call('createFile', { params, body: { path: 'file', content: 'x' } })),
      'set its secret': ({ account, params }) =>
        responseOf(() =>
          account.call('createSecret', { body: { name: 'ITS', value: 'x', sandbox_id: params.id } }),
        ),
    },
    readState: async (owned) => {
      const query = { sandbox_id: owned.params.id }
      const { body } = await owned.account.call('listSecrets', { query })
      return { ...(await stateOf(owned)), secrets: body.data.length }
    },
    end: ({ account, params }) => account.call('destroySandbox', { params }),
  }
}

type Shared = Pick<ReturnType<typeof shareSandbox>, 'alice' | 'params' | 'exec' | 'sh'>

let names = 0
const secrets = ({ alice, sh }: Shared, isAlive: boolean): Kind<string> => {
  const set = (value: string) => (name: string) =>
    responseOf(() => alice.call('createSecret', { body: { name, value } }))
  const list = async (name: string) => {
    const { body } = await alice.call('listSecrets')
    return body.data.filter((secret) => secret.name === name).length
  }
  // Output is redacted, so the test reads the length of the value.
  const lengthIn = async (name: string) => (await sh(`printf %s "$${name}" | wc -c`)).stdout.trim()
  return {
    make: async () => {
      const name = `SECRET_${names++}`
      if (isAlive) await set('first value')(name)
      return name
    },
    // Pairs of an existing secret already cover the others.
    isTried: (names) => isAlive || !(names.includes('list') || names.includes('set another')),
    operations: {
      list,
      'set one': set('second secret value'),
      'set another': set('third'),
      delete: (name) => responseOf(() => alice.call('deleteSecret', { params: { name } })),
      use: lengthIn,
    },
    readState: async (name) => [await list(name), await lengthIn(name)],
    end: (name) => responseOf(() => alice.call('deleteSecret', { params: { name } })),
  }
}

const keyedCommands = ({ alice, params, sh }: Shared): Kind<string> => {
  const run = (more: Partial<ExecRequest>) => (key: string) => {
    const body = { command: `echo ran >>${key}; sleep 0.05; echo printed`, ...more }
    const call = () => alice.call('execCommand', { params, body, headers: { 'idempotency-key': key } })
    return responseOf(call, ({ body }) => ({ id: body.id, status: body.status, stdout: body.stdout }))
  }
  return {
    make: async () => `key-${randomUUID()}`,
    operations: { run: run({}), 'run another': run({ command: 'true' }) },
    readState: async (key) => (await sh(`cat ${key} 2>/dev/null`)).stdout,
  }
}
