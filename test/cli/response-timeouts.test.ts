import { expect, test } from 'vitest'
import { createApi } from '../../cli/core/api.ts'
import { Settings } from '../../cli/core/settings.ts'
import { Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'

test('a request that times out is not retried, even if a retry would be safe', async () => {
  await using silent = await startPeer(() => {})
  const api = createApi(new Settings({}, settingsFor(silent.url)))
  const error = await api.call('getAccount', { timeoutMs: 400 }).catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'network', message: expect.stringContaining('no reply within 1 s') })
  expect(silent.asked).toHaveLength(1)
})

test.each([
  ['whoami', 30],
  ['files grep x', 45],
  ['files mv a b', 75],
])('on a terminal, `%s` reports a slow response and waits %i s', async (command, seconds) => {
  await using silent = await startPeer(() => {})
  using home = new Home()
  const terminal = home.open(command.split(' '), settingsFor(silent.url))
  await terminal.shows(`${silent.url} has not replied yet. Waiting up to ${seconds} s.`)
  terminal.type('\u0003')
  expect(await terminal.ended).toBe(130)
})

/** Rejects the first requests with a rate limit error. */
const limited = (times: number, seconds: number) => {
  let refused = 0
  return startPeer((_, response) => {
    if (refused++ >= times) return void response.end('{"paths":[],"truncated":false}')
    const detail = `At most 5 of these requests a minute. Try again in ${seconds} s.`
    const problem = { code: 'rate_limited', detail, request_id: 'req_1', status: 429 }
    response.writeHead(429, { 'retry-after': String(seconds) }).end(JSON.stringify(problem))
  })
}

test('if Retry-After is short, the client prints a note, waits and retries', async () => {
  await using peer = await limited(1, 1)
  using home = new Home()
  const ran = await home.run(['files', 'glob', '*'], { env: settingsFor(peer.url) })
  expect(ran).toMatchObject({ code: 0, stdout: '' })
  expect(ran.stderr).toMatch(/^sandlot: At most 5 .*\nWaiting up to 1 s\.\n$/)
})

test('if Retry-After is long, the client exits without waiting and prints the retry time once', async () => {
  await using peer = await limited(9, 60)
  using home = new Home()
  const { code, stderr } = await home.run(['whoami'], { env: settingsFor(peer.url) })
  expect(code).toBe(7)
  expect(stderr.match(/Try again in/g)).toHaveLength(1)
  expect(peer.asked).toHaveLength(1)
})
