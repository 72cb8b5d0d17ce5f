/**
 * A server in place of the agent of a local sandbox, as if a tenant had taken over the agent process. The test
 * installs it from outside, because no path inside the sandbox leads to the agent's socket.
 */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import type { World } from '../support/index.ts'

/** Limit for each connection, so that the test of a broken driver ends. */
export const maxSentBytes = 64 * 1024 * 1024
const chunkBytes = 64 * 1024

export const agentSocketOf = ({ settings }: World, sandboxId: string): string =>
  join(settings.local.directory, podName(sandboxId), 'agent.sock')

export type Role = 'main' | 'stdout' | 'stderr'

/** Encodes a status line of an agent. */
export const status = (fields: object): Buffer => Buffer.from(`${JSON.stringify(fields)}\n`)

/**
 * Replaces the agent until the test is over. After the driver's first line, the connection of this role receives
 * `first`, and then the bytes of `endless` repeatedly.
 * @returns the number of bytes that each flooded connection has accepted so far
 */
export async function replaceAgent(
  socketPath: string,
  attack: { started?: boolean; role: Role; endless: Buffer },
): Promise<number[]> {
  const sent: number[] = []
  const { endless } = attack
  const chunk = Buffer.alloc(Math.ceil(chunkBytes / endless.length) * endless.length, endless)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    const flood = (index: number) => {
      while (!socket.destroyed && sent[index]! < maxSentBytes) {
        sent[index]! += chunk.length
        if (!socket.write(chunk)) return void socket.once('drain', () => flood(index))
      }
      socket.destroy()
    }
    socket.once('data', (line) => {
      const { role } = JSON.parse(String(line).split('\n', 1)[0]!) as { role: Role }
      if (role === 'main' && attack.started) socket.write(status({ started: true }))
      if (role === attack.role) flood(sent.push(0) - 1)
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
