/**
 * What a worker answers to a call, on its way to the API. JSON makes up to six bytes of one of a command's output, and
 * takes tens of milliseconds for a megabyte of it on either side; texts of that size go as they are.
 */
import { deserialize, serialize } from 'node:v8'

const asJson = 'application/json'
const asValue = 'application/vnd.sandlot.value'

/** Characters of all texts together: less is quicker in JSON. */
const largeLength = 64 * 1024

export function encodeReply(reply: object): { type: string; bytes: string | Buffer } {
  if (lengthOfTexts(reply) < largeLength) return { type: asJson, bytes: JSON.stringify(reply) }
  return { type: asValue, bytes: serialize(reply) }
}

export const decodeReply = (type: string | undefined, bytes: Buffer): unknown =>
  type === asValue ? deserialize(bytes) : JSON.parse(bytes.toString())

/** The characters of all texts that stand in it directly, such as a command's output. */
export const lengthOfTexts = (value: object): number =>
  Object.values(value).reduce((sum: number, part) => sum + (typeof part === 'string' ? part.length : 0), 0)
