/** Serializes changes to a pod among all workers on this machine, with one lock per pod. */
import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { limitByKey } from '../../../shared/lib/limit-by-key.ts'
import { DriverUnavailable } from '../driver.ts'

const retryEveryMs = 5
const retryBudgetMs = 30_000

/**
 * Lets only one caller per process poll for a lock, while the others wait in order. If all of them polled, one
 * of them could miss every turn.
 */
const inProcess = limitByKey()

export function withLock<T>(directory: string, name: string, work: () => Promise<T>): Promise<T> {
  const address = lockAddress(directory, name)
  return inProcess(address, async () => {
    const server = await takeLock(address)
    try {
      return await work()
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })
}

async function takeLock(address: string): Promise<Server> {
  const end = performance.now() + retryBudgetMs
  for (;;) {
    const server = await listen(address)
    if (server) return server
    if (performance.now() > end)
      throw new DriverUnavailable('another worker has locked this sandbox for too long')
    await sleep(retryEveryMs)
  }
}

/**
 * Returns the address of an abstract socket that serves as the pod's lock. The kernel lets only one process
 * bind the socket, and frees the address when that process exits.
 */
function lockAddress(directory: string, name: string): string {
  const id = createHash('sha256').update(`${directory}\n${name}`).digest('hex').slice(0, 40)
  return `\0sandlot-${id}`
}

function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    )
    server.listen({ path: address, exclusive: true }, () => resolve(server))
  })
}
