/** Requests that are still running 12 s after the API process received SIGTERM. */
import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { graceMs } from '../../scripts/supervisor/application.ts'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { type Account, Refusal } from '../support/account.ts'
import { bytesOf, type EventReader, readEvents } from '../support/events.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { send } from '../support/http.ts'
import { toolCall } from '../support/mcp.ts'
import { shareSandbox } from '../support/shared.ts'
import { newWebSocket } from '../support/web-socket.ts'

const { world, alice, params, sh } = shareSandbox({ apis: 2 })

const until = 'until test -e go; do sleep 0.1; done; echo done'
const keyed = {
  headers: { 'idempotency-key': 'once' },
  body: { command: `echo x >> runs; ${until}; cat runs`, grace_ms: 60_000 } satisfies ExecRequest,
}

/** Requests during the shutdown, and their results. */
let json: unknown
let tool: Record<string, unknown>
let resumable: string
let events: EventReader
let download: Response
let quick: Response
let terminalClosed: number
let unusedClosedMs: number
let unusedClosedFirst: boolean
let endedWith: number | string
let endedMs: number

beforeAll(async () => {
  await sh('head -c 100000000 /dev/zero > large')
  const answered = alice.call('execCommand', { params, ...keyed }).catch((error) => error)
  const told = callTool(alice, { session_id: params.id, command: 'touch tool; sleep 60' })
  const mcp = toolCall(alice, 'exec', { session_id: params.id, command: `touch mcp; ${until}` })
  const resumed = { ...mcp, headers: { ...mcp.headers, 'mcp-protocol-version': '2025-11-25' } }
  const cut = send(`${world.url()}/v1/mcp`, resumed)
  const opened = { params, headers: { accept: 'text/event-stream' } }
  events = readEvents(
    await alice.open('execCommand', {
      ...opened,
      body: { command: `echo up; ${until}`, grace_ms: 60_000 },
    }),
  )
  await events.until('stdout')
  download = await alice.open('readRawFile', { params, query: { path: 'large' } })
  const terminal = await openTerminal(alice)
  const late = alice.open('execCommand', { params, body: { command: 'touch late; sleep 2; echo late' } })
  await sh('until test -e runs -a -e tool -a -e mcp -a -e late; do sleep 0.1; done')
  const [api] = world.apis
  const startedAt = performance.now()
  const unused = connect(Number(new URL(api!.url).port), '127.0.0.1')
  await new Promise((resolve) => unused.once('connect', resolve))
  const closed = new Promise<number>((resolve) => {
    unused.once('close', () => resolve(performance.now() - startedAt))
    unused.on('error', () => {})
  })
  api!.signal('SIGTERM')
  unusedClosedFirst = await Promise.race([closed.then(() => true), answered.then(() => false)])
  quick = await late
  unusedClosedMs = await closed
  json = await answered
  tool = await told
  resumable = (await cut).text
  terminalClosed = await terminal.closed
  endedWith = await api!.ended
  endedMs = performance.now() - startedAt
})

test('a process that is shutting down exits before its grace period ends', () => {
  expect(endedWith).toBe(0)
  expect(endedMs).toBeGreaterThan(12_000)
  expectDurationBelow(endedMs, graceMs)
})

test('requests in progress complete during shutdown, and their connections then close', async () => {
  expect(quick.headers.get('connection')).toBe('close')
  expect(await quick.json()).toMatchObject({ status: 'exited', stdout: 'late\n' })
})

test('during shutdown, idle connections close before requests for running commands receive their error', () => {
  expect(unusedClosedFirst).toBe(true)
  expectDurationBelow(unusedClosedMs, 8_000)
})

test('after a shutdown interrupts a request, a retry through another API process attaches to the same command', async () => {
  expect(json).toBeInstanceOf(Refusal)
  const { status, code, retryAfter, headers, problem } = json as Refusal
  expect([status, code, retryAfter, headers.get('connection')]).toEqual([503, 'unavailable', 1, 'close'])
  expect(problem.detail).toMatch(/process is stopping.*Idempotency-Key.*grace_ms.*attaches to it/s)
  expect(problem).not.toHaveProperty('exec_id')
  const running = (await alice.call('listExecs', { params, api: 1 })).body.data.filter(
    ({ command }) => command === keyed.body.command,
  )
  expect(running).toMatchObject([{ status: 'running' }])
  const again = alice.call('execCommand', { params, ...keyed, api: 1 })
  await alice.call('createFile', { params, body: { path: 'go', content: '' }, api: 1 })
  expect((await again).body).toMatchObject({ id: running[0]!.id, status: 'exited', stdout: 'done\nx\n' })
})

test('during shutdown, an event stream closes and can be resumed through another API process', async () => {
  const seen = await events.rest()
  expect(seen.map(({ event }) => event)).toEqual(['start', 'stdout'])
  await alice.call('createFile', { params, body: { path: 'go', content: '', overwrite: true }, api: 1 })
  const one = { ...params, exec_id: seen[0]!.data.id }
  const headers = { 'last-event-id': seen.at(-1)!.id }
  const rest = await readEvents(await alice.open('streamExec', { params: one, headers, api: 1 })).rest()
  expect(bytesOf(rest, 'stdout').toString()).toBe('done\n')
  expect(rest.at(-1)).toMatchObject({ event: 'exit', data: { status: 'exited', exit_code: 0 } })
})

test('during shutdown, a tool call returns a result that reports the shutdown', () => {
  expect(tool).toMatchObject({
    code: 'unavailable',
    detail: expect.stringContaining('process is stopping'),
    next: expect.stringContaining('check whether the call took effect'),
    exec_id: expect.stringMatching(/^exec_/),
  })
})

test("during shutdown, a tool call's stream closes without a result if the client can resume the stream", async () => {
  expect(resumable).not.toContain('"result"')
  const [, eventId] = /^id: (.*)$/m.exec(resumable)!
  await alice.call('createFile', { params, body: { path: 'go', content: '', overwrite: true }, api: 1 })
  const headers = { authorization: `Bearer ${alice.key}`, 'last-event-id': eventId! }
  const { text } = await send(`${world.url(1)}/v1/mcp`, { headers })
  expect(text).toContain('"stdout":"done\\n"')
})

test('a client can detect that a shutdown cut off a download', async () => {
  await expect(download.arrayBuffer()).rejects.toThrow()
})

test('closes the WebSocket of a terminal during shutdown', () => {
  expect(terminalClosed).toBe(1006)
})

async function openTerminal(account: Account): Promise<{ closed: Promise<number> }> {
  const { body } = await account.call('execCommand', { params, body: { command: ['sh'], tty: true } })
  const socket = newWebSocket(world, account, `/v1/sandboxes/${params.id}/exec/${body.id}/attach`)
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('open', resolve))
  return { closed }
}

async function callTool(account: Account, args: object): Promise<Record<string, unknown>> {
  const { text } = await send(`${world.url()}/v1/mcp`, toolCall(account, 'exec', args))
  const [, data] = /^data: (.*)$/m.exec(text) ?? []
  return JSON.parse(JSON.parse(data!).result.content[0].text)
}
