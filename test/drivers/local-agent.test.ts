/** The driver's end of a connection to an agent, which may send anything. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NoAnswer, startProcess } from '../../workers/drivers/local/connection.ts'
import { type Role, status } from '../hostile/hostile-agent.ts'
import { collect } from './processes.ts'

/** Listens as an agent does. @returns the path of its socket */
async function listen(onRequest: (role: Role, socket: Socket) => void): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-agent-'))
  const path = join(folder, 'agent.sock')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (line) => onRequest(JSON.parse(String(line)).role, socket))
  }).listen(path)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  return path
}

test('no output is lost that is read only after the exit status has arrived', async () => {
  const bytes = 300_000
  const path = await listen((role, socket) => {
    if (role === 'main') socket.end(Buffer.concat([status({ started: true }), status({ exit: 7 })]))
    else socket.end(Buffer.alloc(bytes, role))
  })
  const process = await startProcess(path, ['true'], 10_000)
  expect(await process.ended).toEqual({ kind: 'exited', code: 7 })
  expect((await collect(process.stdout)).equals(Buffer.alloc(bytes, 'stdout'))).toBe(true)
  expect((await collect(process.stderr)).equals(Buffer.alloc(bytes, 'stderr'))).toBe(true)
})

test('a status is read wherever its lines are cut', async () => {
  const path = await listen((role, socket) => {
    if (role !== 'main') return void socket.end()
    const bytes = Buffer.concat([status({ started: true }), status({ exit: 7 })])
    const next = (at: number) => {
      socket.write(bytes.subarray(at, at + 1))
      if (at + 1 < bytes.length) setImmediate(next, at + 1)
    }
    next(0)
  })
  const process = await startProcess(path, ['true'], 10_000)
  expect(await process.ended).toEqual({ kind: 'exited', code: 7 })
})

test('an agent that closes the connection before it answers is asked again', async () => {
  const path = await listen((_, socket) => void socket.destroy())
  await expect(startProcess(path, ['true'], 10_000)).rejects.toThrow(NoAnswer)
})

test.each([
  ['that never ends', Buffer.alloc(9_000_000, 'x')],
  ['that is no JSON', Buffer.from('started\n')],
  ['without a meaning', Buffer.from('null\n')],
  ['of another type', Buffer.from('{"started":"true"}\n')],
  ['that comes too early', status({ exit: 0 })],
])('an agent that sends a status %s is refused', async (_, bytes) => {
  const path = await listen((role, socket) => role === 'main' && socket.write(bytes))
  await expect(startProcess(path, ['true'], 10_000)).rejects.toThrow('sent an invalid status')
})

test('an agent that does not answer in time starts nothing', async () => {
  const silent = await listen(() => {})
  await expect(startProcess(silent, ['true'], 50)).rejects.toThrow('did not answer within 50 ms')
})
