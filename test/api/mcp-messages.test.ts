/** The messages of /v1/mcp over HTTP: cancelled and abandoned calls, and refused messages. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { send } from '../support/http.ts'
import { connectMcp, mcpRequest, toolCall, useTool } from '../support/mcp.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ apis: 2 })
let alice: Account
beforeAll(async () => {
  alice = await world.account()
})

const post = (headers: Record<string, string>, body: unknown, key = alice.key, api = 0) =>
  send(`${world.url(api)}/v1/mcp`, mcpRequest({ key }, body, headers))
const toolCallOf = (params: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

describe('cancelling a long command', () => {
  let client: Client
  let session_id: string
  beforeAll(async () => {
    client = await connectMcp(world, alice)
    session_id = (await useTool<{ id: string }>(client, 'session_create')).id
  })
  afterAll(async () => {
    await useTool(client, 'session_destroy', { session_id })
    await client.close()
  })

  const isRunning = async (word: string) =>
    (await inside(alice, { id: session_id }).countOf(`[${word[0]}]${word.slice(1)}`)) > 0
  /** A command that can be found by its command line. */
  const sleeper = (word: string) => ({ session_id, command: `exec sh -c 'sleep 600; : ${word}'` })

  test("a cancellation sent to any API process stops the command and closes the tool call's stream", async () => {
    const request = { name: 'exec', arguments: sleeper('no-answer') }
    const headers = { 'mcp-session-id': 'of-this-test' }
    const answer = post(headers, { jsonrpc: '2.0', id: 7, method: 'tools/call', params: request })
    await world.eventually(() => isRunning('no-answer'), 10_000)
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
    expect(await post(headers, cancel, alice.key, 1)).toMatchObject({ status: 202, text: '' })
    expect((await answer).text).not.toContain('"id":7')
    await world.eventually(async () => !(await isRunning('no-answer')), 10_000)
  })

  test('a cancellation from another client or account has no effect', async () => {
    const request = { name: 'exec', arguments: { session_id, command: 'touch mine; sleep 3; echo finished' } }
    const answer = post(
      { 'mcp-session-id': 'mine' },
      { jsonrpc: '2.0', id: 'same', method: 'tools/call', params: request },
    )
    await world.eventually(
      async () =>
        (await alice.call('execCommand', { params: { id: session_id }, body: { command: 'cat mine' } })).body
          .exit_code === 0,
      10_000,
    )
    const bob = await world.account()
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'same' } }
    await post({ 'mcp-session-id': 'another' }, cancel)
    await post({ 'mcp-session-id': 'mine' }, cancel, bob.key)
    await post({}, cancel)
    expect((await answer).text).toContain('finished')
  })

  test('a long command is stopped when its client disconnects', async () => {
    const leave = new AbortController()
    const left = fetch(`${world.url()}/v1/mcp`, {
      ...toolCall(alice, 'exec', sleeper('hung-up')),
      signal: leave.signal,
    }).then((response) => response.text())
    await world.eventually(() => isRunning('hung-up'), 10_000)
    leave.abort()
    await expect(left).rejects.toThrow()
    await world.eventually(async () => !(await isRunning('hung-up')), 10_000)
  })
})

describe('MCP over HTTP', () => {
  test('a ping receives a JSON response, and a notification receives 202 without a body', async () => {
    const answer = await post({}, ping)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toContain('application/json')
    expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(await post({}, { jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({
      status: 202,
      text: '',
    })
  })

  test('MCP messages escape characters that some parsers treat as line breaks', async () => {
    const { id } = (await alice.call('createSandbox')).body
    const ends = 'a\u0085b\u2028c\u2029d'
    const args = { session_id: id, command: ['printf', '%s', ends] }
    const { text } = await send(`${world.url()}/v1/mcp`, toolCall(alice, 'exec', args))
    expect(text).not.toMatch(/[\u0085\u2028\u2029]/)
    const [, data] = /^data: (.*)$/m.exec(text)!
    expect(JSON.parse(data!).result.structuredContent).toMatchObject({ status: 'exited', stdout: ends })
    await alice.call('destroySandbox', { params: { id } })
  })

  test('each message in a batch counts toward the rate limit', async () => {
    const limit = 12
    const strict = await world.startApi({ RATE_MCP_PER_MINUTE: String(limit) })
    const bob = await world.account()
    const ask = (message: unknown) => post({}, message, bob.key, world.apis.indexOf(strict))
    const batch = (length: number) =>
      Array.from({ length }, (_, id) => ({ ...ping, id, method: 'tools/list' }))
    const long = await ask(batch(100))
    expect(long.status).toBe(400)
    expect(long.text).toContain('at most 10')
    const first = await ask(batch(10))
    expect(first.status).toBe(200)
    expect(JSON.parse(first.text)).toHaveLength(10)
    expect(first.headers['x-ratelimit-limit']).toBe(String(limit))
    const second = await ask(batch(10))
    expect(second.status).toBe(429)
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(0)
  })

  test('a stored cancellation uses little Redis memory and expires', async () => {
    const bob = await world.account()
    const before = new Set(await world.redis.keys('sandlot:mcp-cancelled:*'))
    const ids = ['x'.repeat(60_000), 'short', 7]
    for (const requestId of ids) {
      const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }
      expect((await post({}, cancel, bob.key)).status).toBe(202)
    }
    const marks = (await world.redis.keys('sandlot:mcp-cancelled:*')).filter((mark) => !before.has(mark))
    expect(marks).toHaveLength(ids.length)
    for (const mark of marks) {
      expect(mark.length).toBeLessThan(100)
      const ttl = await world.redis.ttl(mark)
      expect(ttl > 0 && ttl <= 30).toBe(true)
    }
  })

  test.each([
    ['GET', 'POST, OPTIONS'],
    ['HEAD', 'POST, OPTIONS'],
    ['DELETE', 'POST, HEAD, GET, OPTIONS'],
    ['PUT', 'POST, HEAD, GET, OPTIONS'],
  ])('rejects %s with 405 and lists the allowed methods', async (method, allowed) => {
    const answer = await send(`${world.url()}/v1/mcp`, {
      method,
      headers: { authorization: `Bearer ${alice.key}` },
    })
    expect(answer.status).toBe(405)
    expect(answer.headers.allow).toBe(allowed)
  })

  test('returns 401 for a request without an API key and explains how to send a key', async () => {
    const answer = await post({}, ping, '')
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
    expect(JSON.parse(answer.text).code).toBe('missing_credentials')
  })

  test.each([
    ['no message', {}],
    ['an empty batch', []],
    ['an unknown kind of message', { jsonrpc: '2.0', nothing: 1 }],
  ])('rejects a request body that contains %s', async (_, body) => {
    expect((await post({}, body)).status).toBe(400)
  })

  const whoami = { name: 'whoami', arguments: {} }
  test.each([
    ['ping', '*/*', 'application/json'],
    ['ping', 'application/*', 'application/json'],
    ['ping', '', 'application/json'],
    ['ping', 'application/json', 'application/json'],
    ['ping', 'text/event-stream', 'text/event-stream'],
    ['ping', 'text/html, */*;q=0.1', 'application/json'],
    ['tools/call', '*/*', 'text/event-stream'],
    ['tools/call', 'application/*', 'application/json'],
  ])('the %s method with Accept: %s receives the content type %s', async (method, accept, type) => {
    const answer = await post({ accept }, { ...ping, method, ...(method !== 'ping' && { params: whoami }) })
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': expect.stringContaining(type) } })
    expect(answer.text).toContain(method === 'ping' ? '"result":{}' : alice.email)
  })

  test.each(['text/html', '*/*;q=0', 'application/json;q=0, text/event-stream;q=0, */*'])(
    'rejects an MCP client with Accept: %s',
    async (accept) => {
      expect((await post({ accept }, ping)).status).toBe(406)
    },
  )

  test.each([
    ['whoami', null],
    ['session_list', { state: 'active', limit: null, cursor: null }],
  ])('the %s tool treats null for an optional argument as absent', async (name, given) => {
    const answer = await post(
      { accept: 'application/json' },
      toolCallOf({ name, arguments: given, _meta: null }),
    )
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text).result.isError).toBeFalsy()
  })

  test.each(['exec', 'file_list'])(
    'the %s tool rejects null for a required argument with a one-sentence error',
    async (name) => {
      const given = { session_id: null, cwd: null, command: null }
      const answer = await post({ accept: 'application/json' }, toolCallOf({ name, arguments: given }))
      const { detail } = JSON.parse(JSON.parse(answer.text).result.content[0].text)
      expect(detail).toContain('session_id: is required')
    },
  )

  test('treats a null cursor or null params in a list request as absent', async () => {
    for (const params of [null, { cursor: null }]) {
      const answer = await post({ accept: 'application/json' }, { ...ping, method: 'tools/list', params })
      expect(JSON.parse(answer.text).result.tools.length).toBeGreaterThan(5)
    }
  })

  test.each([
    [{ name: 'exec', arguments: 'ls' }, 'params.arguments: must be an object'],
    [{ name: 'exec', arguments: [] }, 'params.arguments: must be an object'],
    [{ name: 7 }, 'params.name: must be a string'],
    [{ name: null }, 'params.name: is required'],
    [[], 'params: must be an object'],
  ])('rejects the tool call %j with a one-sentence error', async (params, sentence) => {
    const answer = await post({}, toolCallOf(params))
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text).detail).toContain(sentence)
    expect(answer.text).not.toContain('invalid_type')
  })

  test('rejects an unknown protocol version', async () => {
    const answer = await post({ 'mcp-protocol-version': '2099-01-01' }, ping)
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('2099-01-01')
  })

  test('each MCP client receives a different session id', async () => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    }
    const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
    const ids = await Promise.all(
      [0, 1].map(async (api) => (await post({}, initialize, alice.key, api)).headers['mcp-session-id']),
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toMatch(/^[\x21-\x7e]+$/)
  })
})
