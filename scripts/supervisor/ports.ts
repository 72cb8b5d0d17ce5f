/** Ports on this machine: who needs which, and whether they are free, before anything starts. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

export interface PortNeed {
  /** The setting that moves it. */
  setting: 'PORT' | 'INTERNAL_PORT' | 'CALLS_PORT'
  host: string
  /** The first one; 0 takes any that are free. */
  first: number
  count: number
}

/**
 * The ports for a need, in a row from the first.
 * @throws in words for the terminal: which port is taken, and what to type
 */
export async function claimPorts({ setting, host, first, count }: PortNeed): Promise<number[]> {
  if (first === 0) return freePorts(host, count)
  const ports = rowFrom(first, count)
  for (const port of ports) {
    const problem = await problemOf(port, host)
    if (problem !== undefined) {
      const other = await nextFreeRow(first, host, count)
      throw new Error(
        `Port ${port} on ${host} ${problem}. Take another one:\n  ${setting}=${other} npm start`,
      )
    }
  }
  return ports
}

function rowFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

async function problemOf(port: number, host: string): Promise<string | undefined> {
  try {
    await closeAll([await listen(port, host)])
    return undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') return 'is taken by another program'
    if (code === 'EACCES') return 'needs more rights than you have'
    return `cannot be used (${message})`
  }
}

async function nextFreeRow(taken: number, host: string, count: number): Promise<number> {
  for (let first = Math.max(taken, 1024) + 1; first + count < 65_536; first += count) {
    const problems = await Promise.all(rowFrom(first, count).map((port) => problemOf(port, host)))
    if (problems.every((problem) => problem === undefined)) return first
  }
  return 0
}

/** Any free ports, all different: each stays open until the last one is known. */
async function freePorts(host: string, count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0, host)))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await closeAll(servers)
  return ports
}

const closeAll = (servers: Server[]) =>
  Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))))

async function listen(port: number, host: string): Promise<Server> {
  const server = createServer().listen({ port, host })
  await once(server, 'listening')
  return server
}
