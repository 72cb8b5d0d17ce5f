/**
 * Uses every operation through a generated client, and prints their names. clients.soak.ts runs this file.
 * Arguments: service URL, email address.
 */
import assert from 'node:assert/strict'
import { createClient, createConfig } from './sdk/client/index.ts'
import * as sdk from './sdk/index.ts'

const [baseUrl, email] = process.argv.slice(2)
const operations = { ...sdk }
const done = []
const clients = { none: createClient(createConfig({ baseUrl })) }

/** @returns the data of a response with this status */
async function call(name, credential, options = {}, status = 200) {
  const answer = await operations[name]({ client: clients[credential], ...options })
  if (answer.stream) {
    const events = await Array.fromAsync(answer.stream)
    done.push(name)
    return events
  }
  const { data, error, response } = answer
  assert.equal(response.status, status, `${name}: ${JSON.stringify(error)}`)
  done.push(name)
  return data
}

const asking = (token) => createClient(createConfig({ baseUrl, auth: () => token }))

const password = 'correct horse battery'
await call('signUp', 'none', { body: { email, password } }, 201)
clients.token = asking((await call('logIn', 'none', { body: { email, password } })).token)
const made = await call('createApiKey', 'token', { body: { name: 'generated' } }, 201)
const rotated = await call('rotateApiKey', 'token', { path: { key_id: made.id }, body: {} }, 201)
assert.equal((await call('listApiKeys', 'token', { query: { limit: 100 } })).data.length, 2)
await call('revokeApiKey', 'token', { path: { key_id: made.id } }, 204)
clients.key = asking(rotated.key)

assert.equal((await call('getAccount', 'key')).email, email)
await call('getUsage', 'key', { query: { limit: 1 } })
const secret = { name: 'TOKEN', value: 'a long secret' }
await call('createSecret', 'key', { body: secret }, 201)
assert.equal((await call('listSecrets', 'key')).data[0].name, 'TOKEN')

const body = { name: 'generated', metadata: { a: 'b' }, env: { GREETING: 'hello' } }
const { id } = await call('createSandbox', 'key', { body }, 201)
const path = { id }
assert.equal((await call('getSandbox', 'key', { path })).metadata.a, 'b')
assert.equal((await call('updateSandbox', 'key', { path, body: { metadata: { a: 'b' } } })).id, id)
const byName = { path: { name: 'generated' }, body: { env: body.env } }
assert.equal((await call('getOrCreateSandbox', 'key', byName)).id, id)
assert.equal((await call('listSandboxes', 'key', { query: { state: 'active' } })).data.length, 1)

const command = { command: 'echo $GREETING; echo $TOKEN' }
assert.equal((await call('execCommand', 'key', { path, body: command })).stdout, 'hello\n[secret TOKEN]\n')
const cat = await call('execCommand', 'key', { path, body: { command: ['cat'], background: true } }, 202)
const atExec = { path: { id, exec_id: cat.id } }
const fed = await call('writeExecStdin', 'key', {
  ...atExec,
  query: { offset: 0, eof: 'true' },
  body: new Blob(['fed']),
})
assert.deepEqual(fed, { offset: 3, eof: true })
const events = await call('streamExec', 'key', atExec)
assert.equal(events.at(-1).status, 'exited')
assert.equal((await call('getExec', 'key', atExec)).stdout, 'fed')
assert.equal((await call('listExecs', 'key', { path })).data.length, 2)
const output = await call('readExecOutput', 'key', {
  ...atExec,
  query: { stream: 'stdout' },
  parseAs: 'blob',
})
assert.equal(await output.text(), 'fed')
// Generated clients have no WebSocket support, so the operation returns 400.
await call('attachExec', 'key', atExec, 400)
await call('connectPort', 'key', { path: { id, port: 3000 } }, 400)
const sleep = await call('execCommand', 'key', { path, body: { command: 'sleep 60', background: true } }, 202)
await call('stopExec', 'key', { path: { id, exec_id: sleep.id }, query: { signal: 'KILL' } })

await call('createFile', 'key', { path, body: { path: 'a file&.txt', content: 'one\ntwo\n' } }, 201)
const file = { path: 'a file&.txt' }
assert.equal((await call('viewFile', 'key', { path, query: { file, start_line: 2 } })).content, 'two\n')
const edit = { ...file, old: 'one', new: 'three' }
assert.equal((await call('editFile', 'key', { path, body: edit })).replacements, 1)
assert.equal((await call('listFiles', 'key', { path })).entries.length, 1)
const found = await call('globFiles', 'key', { path, query: { pattern: '*.txt', file: { path: '.' } } })
assert.deepEqual(found.paths, ['a file&.txt'])
const lines = await call('grepFiles', 'key', { path, query: { pattern: 'thr', ignore_case: 'true' } })
assert.equal(lines.matches[0].text, 'three')
const bytes = new Blob([new Uint8Array([0, 255, 10])])
await call('writeRawFile', 'key', { path, query: { file: { path: 'raw' } }, body: bytes }, 201)
const raw = { path, query: { file: { path: 'raw' } }, headers: { range: 'bytes=1-1' }, parseAs: 'blob' }
assert.deepEqual(
  new Uint8Array(await (await call('readRawFile', 'key', raw, 206)).arrayBuffer()),
  Uint8Array.of(255),
)

assert.ok((await call('makeDirectory', 'key', { path, body: { path: 'folder' } }, 201)).created)
const move = { path: 'raw', to: 'folder/raw' }
assert.equal((await call('moveFile', 'key', { path, body: move })).path, '/workspace/folder/raw')
await call('changeFileMode', 'key', { path, body: { path: 'folder/raw', mode: '600' } })
const stat = await call('statFile', 'key', { path, query: { file: { path: 'folder/raw' } } })
assert.equal(stat.mode, '600')
assert.ok((await call('removeFile', 'key', { path, body: file })).removed)
const remove = { command: 'sleep 5; rm -r folder', background: true }
await call('execCommand', 'key', { path, body: remove }, 202)
const changes = await call('watchFiles', 'key', { path, query: { file: { path: 'folder' } } })
assert.equal(changes.at(-1).code, 'file_not_found')

await call('resetSandbox', 'key', { path })
await call('deleteSecret', 'key', { path: { name: 'TOKEN' } }, 204)
await call('setAllowlist', 'key', { body: { commands: ['git status'] } })
assert.deepEqual((await call('getAllowlist', 'key')).commands, ['git status'])
assert.equal((await call('checkAllowlist', 'key', { body: { command: ['ls'] } })).allowed, false)
await call('clearAllowlist', 'key', {}, 204)
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const accept = { accept: 'application/json, text/event-stream' }
assert.ok((await call('callMcp', 'key', { body: list, headers: accept })).result.tools.length > 5)
// Simulates a stream that broke after its first event. Results of file views are not kept.
const broken = { requestId: 'view', tool: 'file_view', at: Date.now() }
const lastEvent = `${Buffer.from(JSON.stringify(broken)).toString('base64url')}.0`
const resumed = await call('resumeMcp', 'key', { headers: { 'last-event-id': lastEvent } })
const answer = resumed.find((event) => event?.result)
assert.equal(answer.id, 'view')
assert.equal(JSON.parse(answer.result.content[0].text).next, 'Make the same call again.')
assert.equal((await call('getOpenApi', 'none')).openapi, '3.1.0')
assert.match(await call('getDocs', 'none', { parseAs: 'text' }), /<h1>/)
assert.equal((await call('destroySandbox', 'key', { path })).state, 'destroyed')

const next = 'staple of a new kind'
const change = { current_password: password, new_password: next }
clients.token = asking((await call('changePassword', 'token', { body: change })).token)
await call('endSessions', 'token', {}, 204)
const again = await sdk.logIn({ client: clients.none, body: { email, password: next } })
clients.token = asking(again.data.token)
await call('deleteAccount', 'token', { body: { current_password: next } })

console.log(JSON.stringify(done))
