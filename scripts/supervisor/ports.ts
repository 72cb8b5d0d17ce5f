/** Ports on this machine: which ones each kind of process gets, decided before anything starts. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

export interface PortNeed {
  setting: 'PORT' | 'INTERNAL_PORT' | 'CALLS_PORT'
  host: string
  /** The first one; 0 takes any that are free. */
  first: number
  /** Whether the user chose the first one. If not, it is a default, and other free ports will do. */
  isSet: boolean
  count: number
}

/**
 * Reserves consecutive ports, from the first if they are free.
 * @param say reports that a default was replaced
 * @throws a message for the terminal when a port that the user chose is not free: which one, and what to type
 */
export async function claimPorts(
  { setting, host, first, isSet, count }: PortNeed,
  say: (line: string) => void,
): Promise<number[]> {
  if (first === 0) return freePorts(host, count)
  const row = rowFrom(first, count)
  const problem = await claimRow(row, host, isSet)
  if (problem === undefined) return row
  const others = await claimNextRow(first, host, count)
  if (isSet) throw new Error(`${problem}. Take another one:\n  ${setting}=${others[0]} npm start`)
  say(`${problem}: ${setting} is ${others[0]}.`)
  return others
}

function rowFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

/** @returns the problem with the first port that is not free; none is reserved then */
async function claimRow(row: number[], host: string, isSet: boolean): Promise<string | undefined> {
  const reservations = await Promise.all(row.map(reserve))
  for (const [index, port] of row.entries()) {
    const isReserved = !isSet && reservations[index] === 'elsewhere'
    const problem = isReserved ? 'is reserved for another process' : await problemOf(port, host)
    if (problem === undefined) continue
    for (const reservation of reservations) if (typeof reservation === 'object') reservation.close()
    return `Port ${port} on ${host} ${problem}`
  }
  return undefined
}

/**
 * Reserves a port until this process ends. Without that, two stacks that start together would both find it free, seconds
 * before their processes listen. A UDP socket keeps no process from listening on the TCP port with the same number.
 */
async function reserve(port: number) {
  const socket = createSocket('udp4').unref()
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true })
    await once(socket, 'listening')
    return socket
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'elsewhere' : undefined
  }
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

async function claimNextRow(taken: number, host: string, count: number): Promise<number[]> {
  for (let first = Math.max(taken, 1024) + 1; first + count < 65_536; first += count) {
    const row = rowFrom(first, count)
    if ((await claimRow(row, host, false)) === undefined) return row
  }
  return freePorts(host, count)
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
