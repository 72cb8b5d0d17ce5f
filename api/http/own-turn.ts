/**
 * JSON of a megabyte holds up the whole process for tens of milliseconds. JSON of that size is read and made one at a
 * time, each in a turn of the event loop of its own, and accounts take turns: one that sends or asks for much delays the
 * others by one piece of work, not by all of its own.
 */
import { append, type Turns, takeFirst } from '../../shared/platform/turns.ts'
import { lengthOfTexts } from '../../shared/rpc/replies.ts'

/** Characters or bytes; less than that is done within a millisecond or two. */
export const largeLength = 256 * 1024

/** Work by account; that for strangers is under the empty name. */
const waiting: Turns<() => void> = new Map()
let isRunning = false

/** @throws what the work throws */
export const inTurn = <T>(owner: string | undefined, work: () => T): Promise<T> =>
  new Promise((resolve) => {
    append(waiting, owner ?? '', () => resolve(Promise.try(work) as Promise<T>))
    if (!isRunning) setImmediate(runNext)
    isRunning = true
  })

function runNext(): void {
  const run = takeFirst(waiting)
  isRunning = run !== undefined
  if (!run) return
  run()
  setImmediate(runNext)
}

/** JSON of what may hold long texts. @param owner the account that it is for */
export async function toJson(value: object, owner?: string): Promise<string> {
  if (lengthOfTexts(value) < largeLength) return JSON.stringify(value)
  return await inTurn(owner, () => JSON.stringify(value))
}
