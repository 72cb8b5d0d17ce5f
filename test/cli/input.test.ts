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

test('the client rejects stdin that exceeds the request size limit without reading all of it', async () => {
  using home = new Home()
  await using peer = await silent()
  const input = Buffer.alloc(limits.bodyBytes + 1, 'a')
  const { code, stderr } = await home.run(['secrets', 'create', 'A'], { env: env(peer.url), input })
  expect(stderr).toContain(String(limits.bodyBytes))
  expect(code).toBe(2)
  expect(peer.asked).toEqual([])
})

test('`exec --no-stdin` does not wait for a pipe that stays open', async () => {
  using home = new Home()
  await using peer = await silent()
  const { code } = await home.run(['exec', '--no-stdin', 'cat'], { env: env(peer.url), openInput: true })
  expect(code).toBe(125)
  expect(peer.asked).toHaveLength(1)
})

test('the client reports invalid settings before it waits for stdin', async () => {
  using home = new Home()
  for (const args of [
    ['exec', 'cat'],
    ['files', 'create', 'a'],
  ]) {
    const { stderr } = await home.run(args, { openInput: true })
    expect(stderr).toContain('No base address')
  }
})

test('--password-stdin removes one trailing newline and rejects an empty password', async () => {
  using home = new Home()
  await using peer = await silent()
  const args = ['keys', 'ls', '--email', 'a@example.com', '--password-stdin']
  expect(await home.run(args, { env: env(peer.url), input: '\n' })).toMatchObject({ code: 2 })
  expect(peer.asked).toEqual([])
  await home.run(args, { env: env(peer.url), input: 'a long password\r\n' })
  expect(peer.asked[0]?.body).toBe('{"email":"a@example.com","password":"a long password"}')
})
