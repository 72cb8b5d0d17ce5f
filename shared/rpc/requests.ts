/**
 * What the API sends with a call: its arguments as JSON. A large stdin goes beside them as it is, because JSON of ten
 * megabytes is several copies of it in memory, on either side. Such a body is the length of the JSON, the JSON, and the
 * stdin.
 */
import type { IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'

const asJson = 'application/json'
const withStdin = 'application/vnd.sandlot.call'

/** Bytes of the length, a big-endian number. */
const lengthBytes = 4

/** @param args `stdin` may be a Buffer; all else goes as JSON */
export function encodeRequest(args: object): { type: string; body: Buffer[] } {
  const { stdin, ...others } = args as { stdin?: unknown }
  if (!Buffer.isBuffer(stdin)) return { type: asJson, body: [Buffer.from(JSON.stringify(args))] }
  const head = Buffer.from(JSON.stringify(others))
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32BE(head.length)
  return { type: withStdin, body: [Buffer.concat([length, head]), stdin] }
}

/** @returns the arguments. @throws when the body is none of {@link encodeRequest}'s, or breaks off */
export async function readRequest(request: IncomingMessage): Promise<unknown> {
  if (request.headers['content-type'] !== withStdin) return await json(request)
  // One block, so that its memory goes back to the system as a whole.
  const bytes = Buffer.allocUnsafeSlow(Number(request.headers['content-length']))
  let came = 0
  for await (const chunk of request) came += (chunk as Buffer).copy(bytes, came)
  const stdinAt = lengthBytes + bytes.readUInt32BE(0)
  if (came < bytes.length || stdinAt > bytes.length) throw new Error('the body of a call is cut short')
  return { ...JSON.parse(bytes.toString('utf8', lengthBytes, stdinAt)), stdin: bytes.subarray(stdinAt) }
}
