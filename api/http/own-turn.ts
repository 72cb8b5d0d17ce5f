/**
 * JSON of a megabyte holds up the whole process for tens of milliseconds. Answers of that size take a turn of the event
 * loop each, so that one client that asks for many delays whoever asks for little by one of them, not by all.
 */
import { setImmediate } from 'node:timers/promises'
import { lengthOfTexts } from '../../shared/rpc/replies.ts'

/** Characters; less than that is done within a millisecond or two. */
const largeLength = 256 * 1024

let last: Promise<unknown> = Promise.resolve()

/** JSON of what may hold long texts, made after the large ones that came before. */
export async function toJson(value: object): Promise<string> {
  if (lengthOfTexts(value) < largeLength) return JSON.stringify(value)
  const made = last.then(() => setImmediate()).then(() => JSON.stringify(value))
  last = made.catch(() => {})
  return made
}
