/** Replaces a local sandbox's agent from outside the sandbox, as if a tenant had taken the agent over. */
import { once } from 'node:events'
import { readdirSync, renameSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import type { World } from '../support/index.ts'

/** Limit per connection, so that the test ends even if the driver is broken. */
const maxSentBytes = 64 * 1024 * 1024
const chunkBytes = 64 * 1024

export function agentSocketOf({ settings }: World, sandboxId: string): string {
  const folder = join(settings.local.directory, podName(sandboxId))
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.sock'))!)
}

export type Role = 'main' | 'stdout' | 'stderr'

export const status = (fields: object): Buffer => Buffer.from(`${JSON.stringify(fields)}\n`)

/**
 * Replaces the agent until the test ends. Each connection with this role receives `endless` repeatedly.
 * @returns the number of bytes accepted so far by each flooded connection
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
  // A socket is bound to a path of at most 107 bytes.
  const shortPath = join(dirname(socketPath), 'tenant')
  server.listen(shortPath)
  await once(server, 'listening')
  renameSync(shortPath, socketPath)
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return sent
}
