/** Triggers every error code, and checks its documented status and title. */
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import jwt from 'jsonwebtoken'
import { beforeAll, expect, inject, test } from 'vitest'
import { codesOf } from '../../api/http/responses.ts'
import { type ErrorCode, errors } from '../../shared/contract/errors.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newExecId } from '../../shared/data/ids.ts'
import { type Account, type CallOptions, callAs, codeOf, expectRefusal, Refusal } from '../support/account.ts'
import { type RawRequest, send } from '../support/http.ts'
import { startWorld, type World } from '../support/index.ts'
import { insertSandbox } from '../support/rows.ts'
import { takeAllProcesses } from '../support/sandbox-commands.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '100' } })

/** No workers, so sandboxes never become ready. */
const idle = shareWorld({ workers: 0 })

type Trigger = (alice: Account) => Promise<{ name: EndpointName; call: Promise<unknown> }>

const triggers: Record<ErrorCode, Trigger> = {
  invalid_request: async (alice) => calling(alice, 'createSandbox', { body: { ttl_seconds: 0 } }),
  missing_credentials: async () => ({ name: 'getAccount', call: callAs(world, {}, 'getAccount') }),
  invalid_credentials: async (alice) =>
    calling(alice, 'logIn', { body: { email: alice.email, password: 'not her password' } }),
  token_expired: async (alice) => {
    const claims = { issuer: 'sandlot', audience: 'sandlot-dashboard', subject: alice.id, expiresIn: -1 }
    return calling(alice.with({ token: jwt.sign({}, world.settings.jwtSecrets[0]!, claims) }), 'listApiKeys')
  },
  wrong_credential_type: async (alice) =>
    calling(alice.with({ token: alice.key }), 'createApiKey', { body: {} }),
  scope_not_allowed: async (alice) => {
    const { body } = await alice.call('createApiKey', { body: { scope: 'run' } })
    return calling(alice.with({ key: body.key }), 'clearAllowlist')
  },
  account_suspended: async (alice) => {
    await world.db.query('update account set suspended_at = sandlot_now() where id = ?', [alice.id])
    return calling(alice, 'createSandbox')
  },
  command_not_allowed: async (alice) => {
    const params = await sandboxOf(alice)
    await alice.call('setAllowlist', { body: { commands: ['ls'] } })
    return calling(alice, 'execCommand', { params, body: { command: ['id'] } })
  },
  origin_not_allowed: async (alice) =>
    calling(alice, 'getAccount', { headers: { origin: 'https://elsewhere.example' } }),
  host_not_allowed: async (alice) => {
    // `fetch` derives the Host header from the URL and does not let callers set it.
    const headers = { authorization: `Bearer ${alice.key}`, host: 'elsewhere.example' }
    return { name: 'getAccount', call: refused('/v1/account', { headers }) }
  },
  permission_denied: async (alice) => {
    const params = await sandboxOf(alice)
    await run(alice, params, 'echo secret > closed; chmod 000 closed')
    return calling(alice, 'viewFile', { params, query: { path: 'closed' } })
  },
  read_only: async (alice) =>
    calling(alice, 'createFile', { params: await sandboxOf(alice), body: { path: '/usr/x', content: '' } }),
  not_found: async (alice) => calling(alice, 'getSandbox', { params: { id: `sbx_${'0'.repeat(26)}` } }),
  file_not_found: async (alice) =>
    calling(alice, 'viewFile', { params: await sandboxOf(alice), query: { path: 'nothing' } }),
  exec_not_found: async (alice) =>
    calling(alice, 'getExec', { params: { ...(await sandboxOf(alice)), exec_id: newExecId() } }),
  exec_finished: async (alice) => {
    const params = await sandboxOf(alice)
    const { body } = await run(alice, params, 'true')
    return calling(alice, 'stopExec', { params: { ...params, exec_id: body.id } })
  },
  stdin_offset_conflict: async (alice) => {
    const params = await execOf(alice, 'cat')
    return calling(alice, 'writeExecStdin', { params, query: { offset: 1 }, bytes: Buffer.from('x') })
  },
  range_not_satisfiable: async (alice) => {
    const params = await execOf(alice, 'cat')
    return calling(alice, 'readExecOutput', { params, headers: { range: 'bytes=7-' } })
  },
  method_not_allowed: async () => ({
    name: 'getOpenApi',
    call: refused('/v1/openapi.json', { method: 'DELETE' }),
  }),
  email_taken: async (alice) =>
    calling(alice, 'signUp', { body: { email: alice.email, password: 'another password' } }),
  api_key_limit_reached: async (alice) => {
    await world.db.query(
      `insert into api_key (id, account_id, hash, last_four)
       select 'key_' || ? || n, ?, sha256((? || n)::bytea), 'last' from generate_series(1, ?::int) as n`,
      [alice.id, alice.id, alice.id, limits.apiKeys - 1],
    )
    return calling(alice, 'createApiKey', { body: {} })
  },
  file_exists: async (alice) => {
    const params = await sandboxOf(alice)
    await alice.call('createFile', { params, body: { path: 'a', content: 'first' } })
    return calling(alice, 'createFile', { params, body: { path: 'a', content: 'second' } })
  },
  is_directory: async (alice) =>
    calling(alice, 'viewFile', { params: await sandboxOf(alice), query: { path: '/tmp' } }),
  edit_no_match: async (alice) => editing(alice, { content: 'a', old: 'b' }),
  edit_not_unique: async (alice) => editing(alice, { content: 'aa', old: 'a' }),
  precondition_failed: async (alice) => editing(alice, { content: 'a', old: 'a', if_match: '0'.repeat(64) }),
  sandbox_mismatch: async (alice) => {
    const params = { name: 'web' }
    await alice.call('getOrCreateSandbox', { params, headers: { prefer: 'respond-async' } })
    return calling(alice, 'getOrCreateSandbox', { params, body: { env: { A: 'a' } } })
  },
  idempotency_conflict: async (alice) => {
    const headers = { 'idempotency-key': 'once', prefer: 'respond-async' }
    await alice.call('createSandbox', { headers, body: {} })
    return calling(alice, 'createSandbox', { headers, body: { name: 'other' } })
  },
  sandbox_starting: async () => ({ name: 'execCommand', call: slowRequests!.starting }),
  sandbox_destroyed: async (alice) => {
    const params = await sandboxOf(alice)
    await alice.call('destroySandbox', { params })
    return calling(alice, 'execCommand', { params, body: { command: 'true' } })
  },
  sandbox_exhausted: async (alice) => {
    const params = await sandboxOf(alice)
    await takeAllProcesses(alice, params)
    const call = () => alice.call('execCommand', { params, body: { command: 'true' } })
    await world.eventually(async () => (await codeOf(call())) !== 'success', 30_000)
    return calling(alice, 'execCommand', { params, body: { command: 'true' } })
  },
  request_timeout: async () => ({ name: 'createApiKey', call: slowRequests!.slow }),
  body_too_large: async (alice) =>
    calling(alice, 'createApiKey', { body: { name: 'x'.repeat(limits.bodyBytes) } }),
  unsupported_media_type: async (alice) =>
    calling(alice, 'createApiKey', { body: {}, headers: { 'content-type': 'text/plain' } }),
  rate_limited: async (alice) => {
    const strict = await world.startApi({ RATE_SANDBOX_LIFECYCLE_PER_MINUTE: '1' })
    const options = { params: { id: `sbx_${'0'.repeat(26)}` }, api: world.apis.indexOf(strict) }
    await alice.call('destroySandbox', options).catch(() => {})
    return calling(alice, 'destroySandbox', options)
  },
  concurrent_sandbox_limit_reached: async (alice) => {
    await world.db.query('update account set concurrent_limit = 0 where id = ?', [alice.id])
    return calling(alice, 'createSandbox')
  },
  monthly_usage_limit_reached: async (alice) => {
    await world.db.query('update account set hours_limit = 0 where id = ?', [alice.id])
    return calling(alice, 'createSandbox')
  },
  internal_error: async (alice) => {
    await world.db.query('alter table account rename column email to other')
    const call = alice.call('getAccount')
    const restore = () => world.db.query('alter table account rename column other to email')
    return { name: 'getAccount', call: call.finally(restore) }
  },
  sandbox_start_failed: async () => {
    const broken = await startBroken()
    const bob = await broken.account()
    const call = bob.call('createSandbox')
    return { name: 'createSandbox', call: call.finally(() => broken[Symbol.asyncDispose]()) }
  },
  unavailable: async (alice) => {
    const cutOff = await world.startApi({ REDIS_URL: 'unix:///nowhere/redis.sock' })
    return calling(alice, 'createSandbox', { api: world.apis.indexOf(cutOff) })
  },
  disk_full: async (alice) => {
    const params = await sandboxOf(alice)
    await run(alice, params, 'head -c 80000000 /dev/zero > /tmp/big')
    return calling(alice, 'createFile', { params, body: { path: '/tmp/a', content: 'x'.repeat(100_000) } })
  },
}

/** Slow requests start before all other requests. */
let slowRequests: { slow: Promise<unknown>; starting: Promise<unknown> } | undefined
beforeAll(async () => {
  const alice = await world.account()
  const headers = { 'content-type': 'application/json' }
  const bytes = new ReadableStream({ start: (body) => body.enqueue(Buffer.from('{')) })
  const slow = calling(alice, 'createApiKey', { headers, bytes }).call

  const bob = await idle.account()
  const id = await insertSandbox(idle, bob, { ready_at: null })
  const starting = calling(bob, 'execCommand', { params: { id }, body: { command: 'true' } }).call
  slowRequests = { slow, starting }
})

const longOnes: ErrorCode[] = ['sandbox_starting', 'request_timeout']
const codes = [
  ...(Object.keys(errors) as ErrorCode[]).filter((code) => !longOnes.includes(code)),
  ...longOnes,
]

test.each(codes)('returns the %s error as a problem document', async (code) => {
  const alice = await world.account()
  const { name, call } = await triggers[code](alice)
  const refusal = await expectRefusal(call)
  const { status, title } = errors[code]
  if (!(refusal instanceof Error && 'problem' in refusal)) throw refusal
  expect(refusal.problem).toMatchObject({ type: 'about:blank', title, status, code })
  expect(refusal.status).toBe(status)
  expect(refusal.problem.detail).toMatch(/\S/)
  expect(refusal.headers.get('content-type')).toBe('application/problem+json')
  expect(refusal.headers.get('x-request-id')).toBe(refusal.problem.request_id)
  expect(refusal.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
  const waits = status === 429 || status === 503 || code === 'sandbox_starting'
  expect(Number.isInteger(refusal.retryAfter)).toBe(waits)
  if (waits) expect(refusal.retryAfter).toBeGreaterThan(0)
  if (code !== 'method_not_allowed') expect(codesOf(endpoints[name])).toContain(code)
})

test('an internal error reveals no details to the client and is logged with the request id', async () => {
  const alice = await world.account()
  const { call } = await triggers.internal_error(alice)
  const refusal = await expectRefusal(call)
  expect(JSON.stringify(refusal.problem)).not.toMatch(/column|sql|account|at /i)
  const id = refusal.problem.request_id
  const line = await world.eventually(
    () => world.apis[0]!.lines.find((line) => line.request_id === id && line.level === 'error'),
    2_000,
  )
  expect(JSON.stringify(line)).toContain('column')
})

test('a sandbox that fails to start is not billed, and its error states the reason', async () => {
  await using broken = await startBroken()
  const alice = await broken.account()
  const refusal = await expectRefusal(alice.call('createSandbox'))
  expect(refusal.problem.detail).toContain('no isolation today')
  const { body } = await alice.call('getSandbox', { params: { id: String(refusal.problem.sandbox_id) } })
  expect(body).toMatchObject({
    state: 'destroyed',
    destroy_reason: 'start_failed',
    ready_at: null,
    billed_seconds: 0,
  })
  expect(body.destroy_detail).toContain('no isolation today')
  expect((await alice.call('getAccount')).body).toMatchObject({
    usage: { milliseconds: 0 },
    concurrent: { active: 0 },
  })
})

/** Sends requests that `call` does not support. */
async function refused(path: string, request: RawRequest): Promise<never> {
  const { status, headers, text } = await send(`${world.url()}${path}`, request)
  throw new Refusal(status, new Headers(headers as Record<string, string>), JSON.parse(text))
}

function calling<N extends EndpointName>(account: Account, name: N, options?: CallOptions<N>) {
  const call: Promise<unknown> = account.call(name, options)
  call.catch(() => {})
  return { name, call }
}

async function sandboxOf(account: Account) {
  const { body } = await account.call('createSandbox')
  return { id: body.id }
}

async function execOf(account: Account, command: string) {
  const params = await sandboxOf(account)
  const { body } = await account.call('execCommand', { params, body: { command, background: true } })
  return { ...params, exec_id: body.id }
}

async function editing(
  account: Account,
  { content, ...edit }: { content: string; old: string; if_match?: string },
) {
  const params = await sandboxOf(account)
  await account.call('createFile', { params, body: { path: 'a', content } })
  return calling(account, 'editFile', { params, body: { path: 'a', new: 'c', ...edit } })
}

const run = (account: Account, params: { id: string }, command: string) =>
  account.call('execCommand', { params, body: { command } })

/** bubblewrap stops working after the worker has checked it. */
async function startBroken(): Promise<World> {
  const broken = await startWorld({ workers: 0 })
  const bwrap = join(broken.folder, 'bwrap')
  copyFileSync(inject('services').bwrap!, bwrap)
  chmodSync(bwrap, 0o755)
  await broken.startWorker({ SANDBOX_LOCAL_BWRAP: bwrap })
  writeFileSync(bwrap, '#!/bin/sh\necho no isolation today >&2\nexit 1\n')
  return broken
}
