/**
 * Work on megabytes holds up the whole process for tens of milliseconds. Pieces of it take a turn of the event loop
 * each, so that one client that asks for many delays whoever asks for little by one of them, not by all.
 */
import { setImmediate } from 'node:timers/promises'

/** Characters; less than that is done within a millisecond or two. */
const largeLength = 256 * 1024

let last: Promise<unknown> = Promise.resolve()

/** Does it after the large work that came before. @param length of the texts it is about, in characters */
export async function inOwnTurn<T>(length: number, work: () => T): Promise<T> {
  if (length < largeLength) return work()
  const done = last.then(() => setImmediate()).then(work)
  last = done.catch(() => {})
  return done
}

/** JSON of what may hold long texts, such as a command's output. */
export const toJson = (value: object): Promise<string> =>
  inOwnTurn(lengthOf(value), () => JSON.stringify(value))

const lengthOf = (value: object) =>
  Object.values(value).reduce((sum: number, part) => sum + (typeof part === 'string' ? part.length : 0), 0)
