/** Progress is drawn only on a terminal, and removed at the end. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { showTransfer } from '../../cli/core/progress.ts'
import { clientPath, Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'
import { openTerminal } from './terminal.ts'

const sandbox = { id: 'sbx_a', ready_at: '2026-11-01T00:00:00.000Z', expires_at: '2026-11-01T00:30:00.000Z' }

async function startPatientPeer() {
  const held: ServerResponse[] = []
  const asked = Promise.withResolvers<void>()
  const peer = await startPeer((_, response) => {
    held.push(response)
    asked.resolve()
  })
  return {
    url: peer.url,
    isAsked: asked.promise,
    release: () => held[0]!.end(JSON.stringify(sandbox)),
    [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose](),
  }
}

test('a slow `session create` shows a progress line on a terminal and clears the line at the end', async () => {
  using home = new Home()
  await using peer = await startPatientPeer()
  const terminal = home.open(['session', 'create'], settingsFor(peer.url))
  await terminal.shows('| creating a session')
  await terminal.shows('/ creating a session')
  peer.release()
  expect(await terminal.ended).toBe(0)
  const after = terminal.screen().slice(terminal.screen().lastIndexOf('creating a session'))
  expect(after).toContain('\r\u001b[2K')
  expect(stripVTControlCharacters(after)).toMatch(/\rsbx_a\r\n/)
})

test.each([
  ['with --quiet', ['--quiet'], {}],
  ['with --json', ['--json'], {}],
  ['on a dumb terminal', [], { TERM: 'dumb' }],
])('a slow command shows no progress (%s)', async (_, args, more) => {
  using home = new Home()
  await using peer = await startPatientPeer()
  const terminal = home.open(['session', 'create', ...args], settingsFor(peer.url, more))
  await peer.isAsked
  // Longer than the delay before progress is drawn.
  await sleep(1_000)
  peer.release()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).toContain('sbx_a')
  expect(terminal.screen()).not.toContain('creating')
})

test('`files get` shows the progress of a download', async () => {
  using home = new Home()
  let finish = () => {}
  await using peer = await startPeer((_, response) => {
    response.writeHead(200, { 'content-length': '2000000' }).write(Buffer.alloc(1_000_000))
    finish = () => void response.end(Buffer.alloc(1_000_000))
  })
  const terminal = home.open(['files', 'get', 'big', `${home.folder}/big`], settingsFor(peer.url))
  await terminal.shows('big  [############------------]  50%  1.0/2.0 MB')
  finish()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).toContain('2000000 bytes.')
})

test('`files put` shows the progress of an upload', async () => {
  using home = new Home()
  let read = () => {}
  const server = createServer((request, response) => {
    read = () => request.resume().on('end', () => response.writeHead(201).end('{"path": "/p", "size": 1}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const put = [process.execPath, clientPath, 'files', 'put', '-', 'big']
  const command = ['sh', '-c', 'head -c 50000000 /dev/zero | "$@"', 'sh', ...put]
  const terminal = openTerminal(command, home.environment(settingsFor(url)))
  await terminal.shows(' MB')
  read()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).toMatch(/big {2}\d+\.\d MB {2}\d+\.\d MB\/s/)
  server.close()
})

test('a progress bar shows 0% only at the beginning and 100% only at the end', () => {
  expect(showTransfer(0, 10_000_000, 0)).toBe('[------------------------]   0%  0.0/10.0 MB')
  expect(showTransfer(9_999_999, 10_000_000, 1)).toContain('  99%  ')
  expect(showTransfer(10_000_000, 10_000_000, 4)).toBe(
    '[########################] 100%  10.0/10.0 MB  2.5 MB/s',
  )
  expect(showTransfer(1_500_000, undefined, 1)).toBe('1.5 MB  1.5 MB/s')
})
