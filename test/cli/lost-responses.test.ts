/** After a lost response, the client repeats idempotent requests and otherwise reports an unknown outcome. */
import { expect, test } from 'vitest'
import { Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'

const execId = `exec_${'0'.repeat(26)}`
const problem = (status: number, code: string) =>
  JSON.stringify({ type: 'about:blank', title: code, status, code, detail: 'No.', request_id: 'req_1' })

/** Loses the first matching response, and answers retries as if the request had been executed. */
function startForgetful(lost: string, status: number, code: string) {
  let count = 0
  return startPeer(({ method = '', url = '' }, response) => {
    if (url.startsWith('/v1/auth/login')) return response.end(JSON.stringify({ token: 'a.b.c' }))
    if (!`${method} ${url}`.startsWith(lost)) return response.end('{"data":[],"next_cursor":null}')
    if (++count === 1) response.destroy()
    else response.writeHead(status).end(problem(status, code))
  })
}

const credentials = ['--email', 'a@example.com', '--password-stdin']
const run = (args: string[], url: string, input: string) => {
  const home = new Home()
  return home.run([...args, '--json'], { env: settingsFor(url), input }).finally(() => home[Symbol.dispose]())
}
const sent = (asked: { line: string }[], lost: string) => asked.filter(({ line }) => line.startsWith(lost))

test.each([
  [['account', 'password', ...credentials], 'PUT /v1/account/password', 'old password\nnew password\n'],
  [['account', 'end-sessions', ...credentials], 'DELETE /v1/account/sessions', 'old password'],
  [['kill', '--signal', 'INT', execId], `DELETE /v1/sandboxes/sbx_a/exec/${execId}`, ''],
  [['keys', 'rotate', 'key_a', ...credentials], 'POST /v1/api-keys/key_a/rotate', 'old password'],
  [['files', 'create', 'a', '--content', 'x'], 'PUT /v1/sandboxes/sbx_a/files/raw', ''],
  [['files', 'put', '/dev/null', 'a', '--no-overwrite'], 'PUT /v1/sandboxes/sbx_a/files/raw', ''],
])(
  'if the response is lost, the client does not retry %j and reports an unknown outcome',
  async (args, lost, input) => {
    await using peer = await startForgetful(lost, 401, 'invalid_credentials')
    const { code, json, stderr } = await run(args, peer.url, input)
    expect(stderr).toContain('The outcome of the request is unknown.')
    expect(json().error).toMatchObject({ code: 'network', exit_code: 8 })
    expect(code).toBe(8)
    expect(sent(peer.asked, lost)).toHaveLength(1)
  },
)

test.each([
  [['keys', 'rm', 'key_a', ...credentials], 'DELETE /v1/api-keys/key_a', 'old password'],
  [['secrets', 'rm', '--yes', 'TOKEN'], 'DELETE /v1/secrets/TOKEN', ''],
])('if the response is lost, the client retries %j and treats 404 as success', async (args, lost, input) => {
  await using peer = await startForgetful(lost, 404, 'not_found')
  expect(await run(args, peer.url, input)).toMatchObject({ code: 0, stderr: '' })
  expect(sent(peer.asked, lost)).toHaveLength(2)
})

test('a delete fails if the first response is 404 or if the retry fails with an error other than 404', async () => {
  await using missing = await startPeer((_, response) =>
    response.writeHead(404).end(problem(404, 'not_found')),
  )
  expect(await run(['secrets', 'rm', '--yes', 'TOKEN'], missing.url, '')).toMatchObject({ code: 3 })
  const lost = 'DELETE /v1/secrets/TOKEN'
  await using refusing = await startForgetful(lost, 403, 'scope_not_allowed')
  expect(await run(['secrets', 'rm', '--yes', 'TOKEN'], refusing.url, '')).toMatchObject({ code: 4 })
})
