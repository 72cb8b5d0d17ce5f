/** The exit of a process. A fake API server sends responses that a real one sends only rarely. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { ClusterConnection } from '../../workers/drivers/kubernetes/client.ts'
import { openExec } from '../../workers/drivers/kubernetes/exec.ts'
import { collect } from './processes.ts'

const success = { metadata: {}, status: 'Success' }
const failure = (code: string) => ({
  status: 'Failure',
  reason: 'NonZeroExitCode',
  message: `command terminated with exit code ${code}`,
  details: { causes: [{ reason: 'ExitCode', message: code }] },
})
/** Version 4 is passed to the runtime. In version 5, the API server generates the statuses. */
const terminal = { tty: { rows: 24, columns: 80 } }
const exited = (code: number) => ({ kind: 'exited', code })
const lost = (why: string) => ({ kind: 'lost', why })
const unproven = lost('its exit code did not arrive; the connection may have broken')
const notRunning = { status: 'Failure', message: 'container not running' }

let server: WebSocketServer
let connection: ClusterConnection
let folder: string
/** Message on the status channel. If undefined, the server closes the connection. */
let status: unknown
let spoken: string

beforeAll(async () => {
  server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket) => {
    spoken = socket.protocol
    socket.send(Buffer.from('\x01out'))
    if (status !== undefined) socket.send(Buffer.from(`\x03${JSON.stringify(status)}`))
    socket.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  folder = await mkdtemp(join(tmpdir(), 'sandlot-exec-'))
  const path = join(folder, 'kubeconfig')
  const config = {
    clusters: [
      { name: 'here', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'here', user: {} }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'here' } }],
    'current-context': 'here',
  }
  await writeFile(path, JSON.stringify(config))
  connection = ClusterConnection.open(path)
})
afterAll(async () => {
  server?.close()
  await connection?.close()
  if (folder) await rm(folder, { recursive: true })
})

test.each([
  { on: 'a terminal', says: success, end: exited(0) },
  { on: 'a terminal', says: failure('7'), end: exited(7) },
  { on: 'a terminal', says: undefined, end: lost('the connection closed (1005)') },
  { on: 'pipes', says: success, end: unproven },
  { on: 'pipes', says: failure('7'), end: exited(7) },
  { on: 'pipes', says: failure('0'), end: unproven },
  { on: 'pipes', says: notRunning, end: lost('container not running') },
  { on: 'pipes', says: undefined, end: lost('the connection closed (1005)') },
])('a process on $on with the status $says.status is reported as $end', async ({ on, says, end }) => {
  status = says
  const isTerminal = on === 'a terminal'
  const process = await openExec(connection, 'sandboxes', 'sandbox', ['true'], isTerminal ? terminal : {})
  expect(String(await collect(process.stdout))).toBe('out')
  expect(await process.ended).toEqual(end)
  expect(spoken).toBe(isTerminal ? 'v4.channel.k8s.io' : 'v5.channel.k8s.io')
})
