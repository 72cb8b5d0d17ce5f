/** Liveness checks of workers. TLS proves that the answer is from that worker. */
import { type Agent, get } from 'node:https'
import { readPendingInput } from '../platform/event-loop-stall.ts'
import { type Callee, provenTo } from './channel.ts'

/** `gone` when the connection is refused or breaks; `silent` without an answer in `ms`. */
export function askWhetherAlive(
  worker: Callee & { url: string },
  agent: Agent,
  ms: number,
): Promise<'alive' | 'silent' | 'gone'> {
  return new Promise((resolve) => {
    const request = get(new URL('/healthz', worker.url), { ...provenTo(worker), agent }, (response) => {
      response.resume()
      done('alive')
    })
    const done = (answer: 'alive' | 'silent' | 'gone') => {
      clearTimeout(timer)
      resolve(answer)
    }
    const timer = setTimeout(async () => {
      // If this process was busy, the answer may have arrived and not been read yet.
      await readPendingInput()
      done('silent')
      request.destroy()
    }, ms)
    request.on('error', () => done('gone'))
  })
}
