/**
 * JSON of a megabyte holds up the whole process for tens of milliseconds. JSON of that size is read and made one at a
 * time, each in a turn of the event loop of its own, and accounts take turns: one that sends or asks for much delays the
 * others by one piece of work, not by all of its own.
 */
import { lengthOfTexts } from '../../shared/rpc/replies.ts'

/** Characters or bytes; less than that is done within a millisecond or two. */
export const largeLength = 256 * 1024

type Owner = string | undefined

/** Work by account, in the order in which the accounts have their turns. */
const waiting = new Map<Owner, (() => void)[]>()
let isRunning = false

/** @throws what the work throws */
export function inTurn<T>(owner: Owner, work: () => T): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const run = () => {
    try {
      resolve(work())
    } catch (error) {
      reject(error)
    }
  }
  waiting.set(owner, [...(waiting.get(owner) ?? []), run])
  if (!isRunning) setImmediate(runNext)
  isRunning = true
  return promise
}

function runNext(): void {
  const [next] = waiting
  if (!next) {
    isRunning = false
    return
  }
  const [owner, [run, ...more]] = next
  // Behind all others, if there is more.
  waiting.delete(owner)
  if (more.length > 0) waiting.set(owner, more)
  run!()
  setImmediate(runNext)
}

/** JSON of what may hold long texts. @param owner the account that it is for */
export async function toJson(value: object, owner?: string): Promise<string> {
  if (lengthOfTexts(value) < largeLength) return JSON.stringify(value)
  return await inTurn(owner, () => JSON.stringify(value))
}
