/**
 * A server in place of the agent of a local sandbox: it stands for a tenant who has taken over the agent process.
 * The test puts it there from outside, because no path inside the sandbox leads to the agent's socket.
 */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { Frame } from '../../workers/drivers/local/frames.mjs'
import type { World } from '../support/index.ts'

/** It stops after so many bytes of each connection, so that a test of a broken driver ends. */
export const maxSentBytes = 64 * 1024 * 1024
const chunkBytes = 64 * 1024

export const agentSocketOf = ({ settings }: World, sandboxId: string): string =>
  join(settings.local.directory, podName(sandboxId), 'agent.sock')

export function frame(type: number, payload = ''): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt8(type, 0)
  header.writeUInt32BE(Buffer.byteLength(payload), 1)
  return Buffer.concat([header, Buffer.from(payload)])
}

/**
 * Replaces the agent until the test is over. Each connection gets a hello, and after the driver's request first the
 * frames of `first` and then those of `endless`, over and over.
 * @returns the bytes that each connection took so far
 */
export async function replaceAgent(
  socketPath: string,
  { first = [], endless }: { first?: Buffer[]; endless: Buffer },
): Promise<number[]> {
  const sent: number[] = []
  const chunk = Buffer.alloc(Math.ceil(chunkBytes / endless.length) * endless.length, endless)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const index = sent.push(0) - 1
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    const goOn = () => {
      while (!socket.destroyed && sent[index]! < maxSentBytes) {
        sent[index]! += chunk.length
        if (!socket.write(chunk)) return void socket.once('drain', goOn)
      }
      socket.destroy()
    }
    socket.write(frame(Frame.hello))
    socket.once('data', () => {
      for (const one of first) socket.write(one)
      goOn()
    })
  })
  rmSync(socketPath)
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return sent
}
