/** Memory reserved for a tenant is counted, limited and released. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Outbox } from '../../api/mcp/outbox.ts'
import { endpoints } from '../../shared/contract/index.ts'
import type { MemoryKind } from '../../shared/platform/memory-budget.ts'
import { type Account, pathOf } from '../support/account.ts'
import { readEvents } from '../support/events.ts'
import { sumUp } from '../support/metrics.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareSandbox } from '../support/shared.ts'
import { newWebSocket, untilOpen } from '../support/web-socket.ts'

const mebibyte = 1024 * 1024
const { world, alice, params, sh, waitForExit } = shareSandbox({ env: { MEMORY_PER_ACCOUNT_MIB: '32' } })

/** Bytes reserved in the worker and the API. */
const heldIn = async (kind: MemoryKind) => {
  const urls = [...world.workers, ...world.apis].map(({ internalUrl }) => internalUrl)
  return (await sumUp(urls, 'sandlot_held_bytes', 'kind'))[kind]
}
const untilHeld = (kind: MemoryKind, bytes: number) =>
  world.eventually(async () => (await heldIn(kind)) === bytes, 10_000)
const startInBackground = async (command: string) =>
  (await alice.call('execCommand', { params, body: { command, background: true } })).body.id

test('unread stdin counts against the memory budget until its command exits', async () => {
  const size = 1_000_000
  const start = (command: string) =>
    alice.call('execCommand', { params, body: { command, background: true, stdin: 'x'.repeat(size) } })
  const startAll = async (): Promise<string[]> => {
    const ids: string[] = []
    for (;;) {
      const answer = await start('sleep 600').catch((error) => error)
      if (answer instanceof Error) {
        expect(answer).toMatchObject({
          status: 429,
          code: 'rate_limited',
          message: expect.stringContaining('unread stdin'),
        })
        return ids
      }
      ids.push(answer.body.id)
    }
  }
  const ids = await startAll()
  expect(ids.length).toBeGreaterThan(25)
  expect(ids.length).toBeLessThan(34)
  expect(await heldIn('stdin')).toBe(ids.length * size)
  // Other accounts have separate budgets, and the rest of this budget is still available.
  const bob = await world.account()
  await bob.call('createSandbox')
  expect(await sh('echo on')).toMatchObject({ stdout: 'on\n' })
  const stop = (exec_id: string) =>
    alice.call('stopExec', { params: { ...params, exec_id }, query: { signal: 'KILL' } })
  for (const id of ids.slice(0, 4)) await stop(id)
  await untilHeld('stdin', (ids.length - 4) * size)
  const { body } = await start('cat >/dev/null; sleep 600')
  await untilHeld('stdin', (ids.length - 4) * size)
  for (const id of [...ids.slice(4), body.id]) await stop(id)
  await untilHeld('stdin', 0)
})

test('pending WebSocket stdin counts against the memory budget', async () => {
  const command = 'until [ -e read ]; do sleep 0.05; done; wc -c'
  const open = async (exec_id: string) => {
    const path = pathOf(endpoints.attachExec, { params: { ...params, exec_id } })
    const socket = newWebSocket(world, alice, path)
    await untilOpen(socket)
    return socket
  }
  const ids = await Promise.all(Array.from({ length: 5 }, () => startInBackground(command)))
  const sockets = await Promise.all(ids.map(open))
  const frame = Buffer.alloc(mebibyte / 16)
  for (const socket of sockets) for (let sent = 0; sent < 192; sent++) socket.send(frame)
  // The sockets may buffer 32 MiB in total, including the share reserved for each open socket.
  const held = async () => (await heldIn('stdin'))! + (await heldIn('websockets'))!
  await world.eventually(async () => (await held()) > 31 * mebibyte, 10_000)
  expect(await held()).toBeLessThanOrEqual(32 * mebibyte)
  for (const socket of sockets) socket.send('{"type":"eof"}')
  await sh('touch read').catch(() => {})
  await world.eventually(async () => (await sh('touch read')).exit_code === 0, 10_000)
  for (const exec_id of ids) {
    const stdout = async () => (await alice.call('getExec', { params: { ...params, exec_id } })).body.stdout
    expect(await world.eventually(stdout, 20_000)).toBe(`${12 * mebibyte}\n`)
  }
  await untilHeld('stdin', 0)
  for (const socket of sockets) socket.close()
})

test('a download releases its memory when it ends', async () => {
  const exec_id = await startInBackground('head -c 4000000 /dev/zero | tr "\\0" x; echo end')
  const of = { ...params, exec_id }
  await waitForExit(exec_id)
  const download = async (range?: string) => {
    const headers = range === undefined ? {} : { range }
    const query = { stream: 'stdout' } as const
    return (await alice.open('readExecOutput', { params: of, query, headers })).text()
  }
  expect(await download('bytes=3999998-4000001')).toBe('xxen')
  expect((await download()) === `${'x'.repeat(4_000_000)}end\n`).toBe(true)
  await untilHeld('streams', 0)
})

test("up to eight readers each receive all of a command's output", async () => {
  const exec_id = await startInBackground('until [ -e go ]; do sleep 0.05; done; echo gone')
  const of = { ...params, exec_id }
  const follow = async () => readEvents(await alice.open('streamExec', { params: of }))
  const readers = await Promise.all(Array.from({ length: 8 }, follow))
  await expect(follow()).rejects.toMatchObject({ status: 429, message: expect.stringContaining('8 readers') })
  await readers[0]!.leave()
  const ninth = await world.eventually(() => follow().catch(() => undefined), 10_000)
  await sh('touch go')
  for (const reader of [...readers.slice(1), ninth]) {
    const { data } = await reader.until('stdout')
    expect(data).toEqual({ text: 'gone\n' })
    await reader.rest()
  }
  await untilHeld('streams', 0)
})

test('while unread responses fill the memory budget, a command runs and its result can be read later', async () => {
  const { id: exec_id } = await sh('head -c 1000000 /dev/zero')
  const headers = { authorization: `Bearer ${alice.key}` }
  // Each zero byte takes six bytes of JSON, so the budget has room for five unread results.
  const head = headOf('GET', pathOf(endpoints.getExec, { params: { ...params, exec_id } }), headers)
  const unread = Array.from({ length: 5 }, () => openRaw(world.url(), head))
  for (const { socket } of unread) socket.pause()
  await world.eventually(async () => (await heldIn('answers'))! > 29_000_000, 20_000)
  const get = (id: string) => alice.call('getExec', { params: { ...params, exec_id: id } })
  await expect(get(exec_id)).rejects.toMatchObject({ status: 429, code: 'rate_limited' })

  const body = { command: 'echo x >> ran; head -c 1000000 /dev/zero; wc -l ran >&2' }
  const refusal = await alice.call('execCommand', { params, body }).catch((error) => error)
  expect(refusal).toMatchObject({ status: 503, code: 'unavailable', retryAfter: 2 })
  const keyed = { params, headers: { 'idempotency-key': 'once' }, body }
  const keyedRefusal = await alice.call('execCommand', keyed).catch((error) => error)
  expect(keyedRefusal).toMatchObject({ status: 503, code: 'unavailable' })
  expect(keyedRefusal.problem).not.toHaveProperty('exec_id')
  expect(await sh('echo small')).toMatchObject({ stdout: 'small\n' })

  for (const { socket } of unread) socket.destroy()
  await untilHeld('answers', 0)
  expect((await get(refusal.problem.exec_id)).body).toMatchObject({ exit_code: 0, stderr: '1 ran\n' })
  expect((await alice.call('execCommand', keyed)).body).toMatchObject({ exit_code: 0, stderr: '2 ran\n' })
})

const call = (account: Account, message: object) =>
  account.open('callMcp', {
    headers: { accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', ...message } as never,
  })

test.each([
  ['id', { id: 'x'.repeat(201) }],
  ['method', { method: 'x'.repeat(201) }],
  ['params.name', { params: { name: 'x'.repeat(201) } }],
  [
    'params._meta.progressToken',
    { params: { name: 'whoami', _meta: { progressToken: '\u2028'.repeat(201) } } },
  ],
])('rejects an MCP message with a %s that is too long to be echoed', async (path, message) => {
  await expect(call(alice, message)).rejects.toMatchObject({
    status: 400,
    problem: { errors: [{ path, message: 'must have at most 200 characters' }] },
  })
})

test('an MCP tool accepts arguments as large as its HTTP route does', async () => {
  const callTool = (name: string, more: object) =>
    call(alice, { params: { name, arguments: { session_id: params.id, ...more } } })
  const listed = await callTool('file_list', { path: 'x'.repeat(70_000) })
  expect(await listed.text()).toContain('invalid_request')
  const created = await callTool('file_create', { path: 'large', content: 'x'.repeat(200_000) })
  expect(await created.text()).toContain('200000')
})

test('an MCP stream that is resumed many times runs its command once', async () => {
  const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }
  const command = 'echo ran >> once; until [ -e go-once ]; do sleep 0.05; done; cat once'
  const args = { session_id: params.id, command }
  const message = {
    jsonrpc: '2.0' as const,
    id: 1,
    method: 'tools/call',
    params: { name: 'exec', arguments: args },
  }
  const first = await alice.open('callMcp', { headers, body: message })
  const chunks = first.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!/^id: \S+$/m.test(text)) text += (await chunks.read()).value
  const [, eventId] = /^id: (\S+)$/m.exec(text)!
  expect(eventId!.length).toBeLessThan(500)
  // A call abandoned before its command starts runs nothing.
  await world.eventually(async () => (await sh('cat once 2>/dev/null')).stdout !== '', 10_000)
  const back = { ...headers, 'last-event-id': eventId! }
  const again = await Promise.all(
    Array.from({ length: 20 }, () => alice.open('resumeMcp', { headers: back })),
  )
  await chunks.cancel()
  await sh('touch go-once')
  for (const answer of again) expect(await answer.text()).toContain('"stdout":"ran\\n"')
  for (const kind of ['requests', 'answers', 'streams'] as const) await untilHeld(kind, 0)
  const long = { ...headers, 'last-event-id': `${'x'.repeat(4_100)}.1` }
  await expect(alice.open('resumeMcp', { headers: long })).rejects.toMatchObject({ status: 400 })
})

test('the outbox of an MCP stream tracks whether the client has read all messages', async () => {
  let sdk!: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sdk = controller
    },
  })
  const outbox = new Outbox()
  const sent = outbox.send(body)
  expect(outbox.isTaken).toBe(false)
  const first = sent.next()
  await nextTurn()
  expect(outbox.isTaken).toBe(true)
  sdk.enqueue(Buffer.from('data: 1\n\n'))
  expect(String((await first).value)).toBe('data: 1\n\n')
  await nextTurn()
  expect(outbox.isTaken).toBe(false)

  const large = `x${'😀\u2028'.repeat(50_000)}`
  sdk.enqueue(Buffer.from(large))
  sdk.close()
  let text = ''
  for await (const chunk of sent) text += String(chunk)
  expect(text === large.replaceAll('\u2028', '\\u2028')).toBe(true)
})
