/** What processes have in use, in bytes. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Process } from './process.ts'

const memoryOf = ({ pid }: Process): number => {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kilobytes) * 1024
}

/** Settings of a world whose processes {@link peakHeld} can look at. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/**
 * Looks again and again while the work is done. What V8 has only not collected yet, which is the more the
 * busier the machine is, is collected before each look.
 * @returns the most that each of them held meanwhile
 */
export async function peakHeld(
  processes: readonly Process[],
  work: () => Promise<unknown>,
): Promise<number[]> {
  const most = processes.map(() => 0)
  let isDone = false
  const look = async (process: Process, index: number) => {
    const inspector = await openInspector(process)
    do {
      await inspector.collectGarbage()
      most[index] = Math.max(most[index]!, memoryOf(process))
      await sleep(100)
    } while (!isDone)
    inspector.close()
  }
  const looks = processes.map(look)
  try {
    await work()
  } finally {
    isDone = true
    await Promise.all(looks)
  }
  return most
}

async function openInspector({ lines }: Process) {
  const url = lines.map(({ msg }) => /^Debugger listening on (ws:\S+)/.exec(msg)?.[1]).find(Boolean)
  const socket = new WebSocket(url!)
  await once(socket, 'open')
  let id = 0
  return {
    async collectGarbage() {
      id += 1
      socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }))
      await once(socket, 'message')
    },
    close: () => socket.close(),
  }
}
