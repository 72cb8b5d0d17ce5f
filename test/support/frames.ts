/** WebSocket frames that no client library sends. */
import { headOf, openRaw, type RawConnection } from './raw.ts'

const opcodes = { continuation: 0, text: 1, binary: 2, ping: 9, pong: 10 } as const

/** Returns a client's frame. The mask is zero, so the payload is sent unchanged. */
export function frame(
  opcode: keyof typeof opcodes,
  payload: Buffer | string = '',
  { fin = true, announced = Buffer.byteLength(payload) } = {},
): Buffer {
  const first = (fin ? 0x80 : 0) | opcodes[opcode]
  const mask = Buffer.alloc(4)
  const length = Buffer.alloc(announced < 126 ? 1 : announced < 65_536 ? 3 : 9)
  length[0] = 0x80 | (announced < 126 ? announced : announced < 65_536 ? 126 : 127)
  if (length.length === 3) length.writeUInt16BE(announced, 1)
  if (length.length === 9) length.writeBigUInt64BE(BigInt(announced), 1)
  return Buffer.concat([Buffer.of(first), length, mask, Buffer.from(payload as string)])
}

export const repeat = (piece: Buffer, bytes: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.max(1, Math.floor(bytes / piece.length)) }, () => piece))

/**
 * Opens a WebSocket without a client library.
 * @throws {Error} with the response if the request is rejected
 */
export async function openRawWebSocket(url: string, path: string, key: string): Promise<RawConnection> {
  const connection = openRaw(
    url,
    headOf('GET', path, {
      authorization: `Bearer ${key}`,
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': 13 },
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    }),
  )
  await new Promise<void>((resolve) => {
    connection.socket.on('data', () => connection.text().includes('\r\n\r\n') && resolve())
    connection.socket.once('close', () => resolve())
  })
  if (connection.text().startsWith('HTTP/1.1 101 ')) return connection
  connection.socket.destroy()
  throw new Error(connection.text().slice(0, 200) || 'closed')
}
