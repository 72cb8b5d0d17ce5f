/** The event stream of a tool call starts immediately and can be resumed at any API process. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, test } from 'vitest'
import { numberEvents, type Ticket } from '../../api/mcp/ticket.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import type { Account } from '../support/account.ts'
import { send } from '../support/http.ts'
import { callTool, mcpRequest } from '../support/mcp.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh, countOf } = shareSandbox({ apis: 2 })

/** Writes a file, then waits until another file exists. */
const waiting = (word: string) => ({
  session_id: params.id,
  command: `echo ran >> ${word}; until [ -e go-${word} ]; do sleep 0.05; done; echo done; : ${word}`,
})
const hasBegun = (word: string) => async () => (await sh(`cat ${word} 2>/dev/null`)).stdout !== ''
const isRunning = async (word: string) => (await countOf(`[:] ${word}`)) > 0

/** An SDK client whose streams can be cut. It resumes them at a different API process. */
async function connect(account: Account, { to = 0, backTo = 1 } = {}) {
  const cut = new AbortController()
  let isBack = false
  const transport = new StreamableHTTPClientTransport(new URL(`${world.url(to)}/v1/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${account.key}` } },
    fetch: async (url, init) => {
      const isResumed = new Headers(init?.headers).has('last-event-id')
      if (isResumed) isBack = true
      const isCall = String(init?.body).includes('tools/call')
      const signal = isCall ? AbortSignal.any([init!.signal!, cut.signal]) : init?.signal
      return fetch(isResumed ? `${world.url(backTo)}/v1/mcp` : url, { ...init, signal: signal ?? null })
    },
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport as never)
  return { client, cut: () => cut.abort(), isBack: () => isBack }
}

// Concurrent, because the tests mostly wait and use separate files.
test.concurrent('a client can resume a broken stream through a different API process', async () => {
  const { client, cut, isBack } = await connect(alice)
  const seen: number[] = []
  const onprogress = ({ progress }: { progress: number }) => seen.push(progress)
  const answer = callTool(client, 'exec', waiting('broken'), { onprogress })
  await world.eventually(async () => seen.length > 0 && (await hasBegun('broken')()), 10_000)
  cut()
  await world.eventually(isBack, 10_000)
  const before = seen.length
  await world.eventually(() => seen.length > before, 10_000)
  await sh('touch go-broken')
  expect((await answer).structuredContent).toMatchObject({ status: 'exited', stdout: 'done\n' })
  expect((await sh('cat broken')).stdout).toBe('ran\n')
  expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  expect(new Set(seen).size).toBe(seen.length)
  await client.close()
})

test.concurrent('a command continues after the API process that received the tool call exits', async () => {
  const other = await world.startApi()
  const { client } = await connect(alice, { to: world.apis.indexOf(other), backTo: 0 })
  const answer = callTool(client, 'exec', waiting('killed'))
  await world.eventually(hasBegun('killed'), 10_000)
  await other.kill()
  await sh('touch go-killed')
  expect((await answer).structuredContent).toMatchObject({ status: 'exited', stdout: 'done\n' })
  expect((await sh('cat killed')).stdout).toBe('ran\n')
  await client.close()
})

test.concurrent('a cancellation stops the command of a resumed stream', async () => {
  const { client, cut, isBack } = await connect(alice)
  const leave = new AbortController()
  const answer = callTool(client, 'exec', waiting('cancelled'), { signal: leave.signal })
  await world.eventually(hasBegun('cancelled'), 10_000)
  cut()
  await world.eventually(isBack, 10_000)
  leave.abort('enough')
  await expect(answer).rejects.toThrow('enough')
  await world.eventually(async () => !(await isRunning('cancelled')), 5_000)
  await client.close()
})

const headers = { 'mcp-protocol-version': '2025-11-25' }
const call = (name: string, args: object, of: Record<string, string> = headers) =>
  mcpRequest(
    alice,
    { jsonrpc: '2.0', id: 'one', method: 'tools/call', params: { name, arguments: args } },
    of,
  )

test.concurrent('if the client does not resume a stream, the command is killed after the grace period', async () => {
  const leave = new AbortController()
  const left = fetch(`${world.url()}/v1/mcp`, { ...call('exec', waiting('left')), signal: leave.signal })
  await world.eventually(hasBegun('left'), 10_000)
  leave.abort()
  await expect(left.then((response) => response.text())).rejects.toThrow()
  expect(await isRunning('left')).toBe(true)
  await world.eventually(async () => !(await isRunning('left')), 15_000)
})

test.concurrent.each([
  ['with an id for resumption', headers, /^:\n\nid: \S+\nretry: 1000\ndata: \n\n/],
  ['of an older protocol version', { 'mcp-protocol-version': '2025-06-18' }, /^:\n\n$/],
])('an MCP stream %s starts before its command exits', async (_, of, first) => {
  const word = `at-once-${Object.values(of)}`
  const response = await fetch(`${world.url()}/v1/mcp`, call('exec', waiting(word), of))
  const chunks = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!first.test(text)) text += (await chunks.read()).value
  expect(text).not.toContain('"result"')
  await sh(`touch go-${word}`)
  for (let next = await chunks.read(); !next.done; next = await chunks.read()) text += next.value
  expect(text).toContain('"exit_code":0')
})

const resume = (eventId: string, key = alice.key) =>
  send(`${world.url(1)}/v1/mcp`, {
    headers: { ...headers, authorization: `Bearer ${key}`, 'last-event-id': eventId },
  })
const eventIdOf = async (ticket: Partial<Ticket>) =>
  numberEvents({ requestId: 'one', tool: 'exec', at: Date.now(), ...ticket }, 7).storeEvent('', {} as never)
const refusalIn = ({ text }: { text: string }) => {
  const { id, result } = JSON.parse(/^data: (\{.*)$/m.exec(text)![1]!)
  expect({ id, isError: result.isError }).toEqual({ id: 'one', isError: true })
  return JSON.parse(result.content[0].text)
}

test('resuming the stream of a tool other than exec returns an error that states the next step', async () => {
  const answer = await resume(await eventIdOf({ tool: 'file_edit' }))
  expect(answer.headers['content-type']).toContain('text/event-stream')
  expect(answer.text).toMatch(/^id: \S+\.8$/m)
  expect(refusalIn(answer)).toMatchObject({
    next: expect.stringContaining('Check whether the call took effect'),
  })
  expect(refusalIn(await resume(await eventIdOf({ tool: 'file_view' })))).toMatchObject({
    next: 'Make the same call again.',
  })
})

test("rejects a request to resume the stream of an unknown command or another account's command", async () => {
  const command = { sandboxId: params.id, key: 'mcp-never' }
  expect(refusalIn(await resume(await eventIdOf({ command })))).toMatchObject({ code: 'exec_not_found' })
  const bob = await world.account()
  expect(refusalIn(await resume(await eventIdOf({ command }), bob.key))).toMatchObject({ code: 'not_found' })
  const nowhere = { command: { sandboxId: newSandboxId(), key: 'mcp-never' } }
  expect(refusalIn(await resume(await eventIdOf(nowhere)))).toMatchObject({ code: 'not_found' })
})

test.each([
  ['nonsense', 'nonsense'],
  ['only a number', '.1'],
  ['unrelated JSON', `${Buffer.from('{"tool":"exec"}').toString('base64url')}.1`],
  ['an unknown tool', `${Buffer.from('{"requestId":1,"tool":"rm","at":1}').toString('base64url')}.1`],
])('rejects %s as an event id', async (_, eventId) => {
  const answer = await resume(eventId)
  expect(answer.status).toBe(400)
  expect(JSON.parse(answer.text).errors).toMatchObject([{ path: 'last-event-id' }])
})
