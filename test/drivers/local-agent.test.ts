/** The driver's end of a connection to an agent, which may send anything. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NoAnswer, startProcess } from '../../workers/drivers/local/connection.ts'
import { Frame } from '../../workers/drivers/local/frames.mjs'
import { frame } from '../hostile/impostor.ts'
import { collect } from './processes.ts'

/** Listens as an agent does. @returns the path of its socket */
async function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-agent-'))
  const path = join(folder, 'agent.sock')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  }).listen(path)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  return path
}

test('of 100,000 small frames none is lost, and other work gets its turn between them', async () => {
  const count = 100_000
  const exit = frame(Frame.exit, '\0\0\0\x07')
  const path = await listen((socket) => {
    socket.write(frame(Frame.hello))
    socket.once('data', () => {
      const flood = Buffer.alloc(6 * count, frame(Frame.stdout, 'x'))
      socket.end(Buffer.concat([frame(Frame.started), flood, exit]))
    })
  })
  const process = await startProcess(path, ['true'], 10_000)
  let turns = 0
  let isOver = false
  const takeTurn = () => {
    turns++
    if (!isOver) setImmediate(takeTurn)
  }
  setImmediate(takeTurn)
  const output = await collect(process.stdout)
  isOver = true
  expect(output.length).toBe(count)
  expect(await process.ended).toEqual({ kind: 'exited', code: 7 })
  // 512 frames of a chunk in each turn, and in some the rest of the chunk before.
  expect(turns).toBeGreaterThan(count / 1_024)
})

test('an agent that sends an invalid frame, or nothing in time, starts nothing', async () => {
  const nonsense = await listen((socket) => socket.write(Buffer.alloc(9_000_000, 255)))
  await expect(startProcess(nonsense, ['true'], 10_000)).rejects.toThrow(NoAnswer)
  const silent = await listen(() => {})
  await expect(startProcess(silent, ['true'], 50)).rejects.toThrow('did not answer within 50 ms')
})
