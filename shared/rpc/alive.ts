/** Liveness checks of workers. TLS authenticates the worker that responds. */
import { type Agent, get } from 'node:https'
import { readPendingInput } from '../platform/event-loop-stall.ts'
import { type Callee, provenTo } from './channel.ts'

/**
 * Checks whether a worker responds. `gone` means that the connection was refused or broke, and `silent` means
 * that there was no response within `ms` milliseconds.
 */
export function checkLiveness(
  worker: Callee & { url: string },
  agent: Agent,
  ms: number,
): Promise<'alive' | 'silent' | 'gone'> {
  return new Promise((resolve) => {
    const request = get(new URL('/healthz', worker.url), { ...provenTo(worker), agent }, (response) => {
      response.resume()
      done('alive')
    })
    const done = (result: 'alive' | 'silent' | 'gone') => {
      clearTimeout(timer)
      resolve(result)
    }
    const timer = setTimeout(async () => {
      // If this process was busy, the response may have arrived without having been read.
      await readPendingInput()
      done('silent')
      request.destroy()
    }, ms)
    request.on('error', () => done('gone'))
  })
}
