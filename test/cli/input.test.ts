/** What the client does with stdin before anything is sent. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { Home } from './client.ts'
import { startPeer } from './peer.ts'

const silent = () => startPeer((_, response) => response.writeHead(500).end())
const env = (url: string) => ({
  SANDLOT_URL: url,
  SANDLOT_API_KEY: 'sandlot_live_x',
  SANDLOT_SESSION: 'sbx_a',
})

test('exec refuses stdin that is not UTF-8, with 125, and sends nothing', async () => {
  using home = new Home()
  await using peer = await silent()
  const { code, stderr } = await home.run(['exec', 'cat'], {
    env: env(peer.url),
    input: Buffer.from([0xff, 0xfe]),
  })
  expect(stderr).toContain('not UTF-8')
  expect(code).toBe(125)
  expect(peer.asked).toEqual([])
})

test('stdin that no request can carry is refused without being read to its end', async () => {
  using home = new Home()
  await using peer = await silent()
  const input = Buffer.alloc(limits.bodyBytes + 1, 'a')
  const exec = await home.run(['exec', 'cat'], { env: env(peer.url), input })
  expect(exec.stderr).toContain(String(limits.bodyBytes))
  expect(exec.code).toBe(125)
  expect(await home.run(['files', 'create', 'a'], { env: env(peer.url), input })).toMatchObject({ code: 2 })
  // Fits by itself, but not with the JSON around it.
  const full = await home.run(['exec', 'cat'], { env: env(peer.url), input: input.subarray(1) })
  expect(full.code).toBe(125)
  expect(peer.asked).toEqual([])
})

test('exec waits for the end of a piped stdin, and says so when it takes long', async () => {
  using home = new Home()
  await using peer = await silent()
  let sentBefore = -1
  await home.run(['exec', 'cat'], {
    env: env(peer.url),
    openInput: true,
    onStart: ({ stdin, stderr }) => {
      stderr?.once('data', (text) => {
        expect(String(text)).toContain('--no-stdin')
        sentBefore = peer.asked.length
        stdin?.end('late')
      })
    },
  })
  expect(sentBefore).toBe(0)
  expect(peer.asked).toHaveLength(1)
})

test('exec --no-stdin does not wait for a pipe that stays open', async () => {
  using home = new Home()
  await using peer = await silent()
  const { code } = await home.run(['exec', '--no-stdin', 'cat'], { env: env(peer.url), openInput: true })
  expect(code).toBe(125)
  expect(peer.asked).toHaveLength(1)
})

test('settings that are wrong are told before stdin is waited for', async () => {
  using home = new Home()
  for (const args of [
    ['exec', 'cat'],
    ['files', 'create', 'a'],
  ]) {
    const { stderr } = await home.run(args, { openInput: true })
    expect(stderr).toContain('No base address')
  }
})

test('--password-stdin drops one line end, and refuses an empty password', async () => {
  using home = new Home()
  await using peer = await silent()
  const args = ['keys', 'ls', '--email', 'a@example.com', '--password-stdin']
  expect(await home.run(args, { env: env(peer.url), input: '\n' })).toMatchObject({ code: 2 })
  expect(peer.asked).toEqual([])
  await home.run(args, { env: env(peer.url), input: 'a long password\r\n' })
  expect(peer.asked[0]?.body).toBe('{"email":"a@example.com","password":"a long password"}')
})
