import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NoAnswer, startProcess } from '../../workers/drivers/local/connection.ts'
import { type Role, status } from '../hostile/hostile-agent.ts'
import { collect } from './processes.ts'

/** Listens in place of an agent. @returns the socket path */
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

test('the output of a process is kept even if it is read only after the exit status has arrived', async () => {
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

test("the status of a local sandbox's agent is read correctly even if it arrives in one-byte chunks", async () => {
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

test("a local sandbox's agent that closes the connection before it responds is reported as NoAnswer", async () => {
  const path = await listen((_, socket) => void socket.destroy())
  await expect(startProcess(path, ['true'], 10_000)).rejects.toThrow(NoAnswer)
})

test.each([
  ['never ends', Buffer.alloc(9_000_000, 'x')],
  ['is not JSON', Buffer.from('started\n')],
  ['is meaningless', Buffer.from('null\n')],
  ['has a value of the wrong type', Buffer.from('{"started":"true"}\n')],
  ['arrives too early', status({ exit: 0 })],
])("rejects a local sandbox's agent whose status %s", async (_, bytes) => {
  const path = await listen((role, socket) => role === 'main' && socket.write(bytes))
  await expect(startProcess(path, ['true'], 10_000)).rejects.toThrow('sent an invalid status')
})

test("a process start fails if the local sandbox's agent does not respond in time", async () => {
  const silent = await listen(() => {})
  await expect(startProcess(silent, ['true'], 50)).rejects.toThrow('did not respond within 50 ms')
})
