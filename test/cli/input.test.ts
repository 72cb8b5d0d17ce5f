import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'

const silent = () => startPeer((_, response) => response.writeHead(500).end())

test('the client rejects stdin over the request size limit without reading all of the input', async () => {
  using home = new Home()
  await using peer = await silent()
  const input = Buffer.alloc(limits.bodyBytes + 1, 'a')
  const { code, stderr } = await home.run(['secrets', 'create', 'A'], { env: settingsFor(peer.url), input })
  expect(stderr).toContain(String(limits.bodyBytes))
  expect(code).toBe(2)
  expect(peer.asked).toEqual([])
})

test('`exec --no-stdin` does not wait for a pipe that stays open', async () => {
  using home = new Home()
  await using peer = await silent()
  const options = { env: settingsFor(peer.url), openInput: true }
  const { code } = await home.run(['exec', '--no-stdin', 'cat'], options)
  expect(code).toBe(125)
  expect(peer.asked).toHaveLength(1)
})

test('the client reports invalid settings before it waits for stdin', async () => {
  using home = new Home()
  const stderr = expect.stringContaining('No base address')
  expect(await home.run(['exec', 'cat'], { openInput: true })).toMatchObject({ stderr })
  expect(await home.run(['files', 'create', 'a'], { openInput: true })).toMatchObject({ stderr })
})

test('--password-stdin removes one trailing newline and rejects an empty password', async () => {
  using home = new Home()
  await using peer = await silent()
  const args = ['keys', 'ls', '--email', 'a@example.com', '--password-stdin']
  const env = settingsFor(peer.url)
  expect(await home.run(args, { env, input: '\n' })).toMatchObject({ code: 2 })
  expect(peer.asked).toEqual([])
  await home.run(args, { env, input: 'a long password\r\n' })
  expect(peer.asked[0]?.body).toBe('{"email":"a@example.com","password":"a long password"}')
})
