/** Encodes tar headers in GNU format, because busybox ignores pax headers. Names need not be valid UTF-8. */
const blockBytes = 512
const types = { file: '0', symlink: '2', directory: '5', longLink: 'K', longName: 'L' }

interface TarEntry {
  name: Buffer
  type: keyof typeof types
  mode: number
  /** Modification time in seconds since the epoch. */
  mtime: number
  size?: number
  link?: Buffer
}

export function encodeHeader(entry: TarEntry): Buffer {
  const { name, link } = entry
  return Buffer.concat([
    ...(link && link.length >= 100 ? longField('longLink', link) : []),
    ...(name.length >= 100 ? longField('longName', name) : []),
    encodeBlock(entry),
  ])
}

export const paddingOf = (size: number): Buffer =>
  Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes)

export const endOfArchive = Buffer.alloc(2 * blockBytes)

function longField(type: 'longLink' | 'longName', value: Buffer): Buffer[] {
  const size = value.length + 1
  const header = encodeBlock({ name: Buffer.from('././@LongLink'), type, mode: 0, mtime: 0, size })
  return [header, value, Buffer.alloc(1), paddingOf(size)]
}

function encodeBlock({ name, type, mode, mtime, size = 0, link }: TarEntry): Buffer {
  const block = Buffer.alloc(blockBytes)
  const writeNumber = (value: number, at: number, digits: number) =>
    block.write(value.toString(8).padStart(digits, '0'), at)
  name.copy(block, 0, 0, 100)
  writeNumber(mode, 100, 7)
  // Always root, so that the archive does not reveal local users.
  writeNumber(0, 108, 7)
  writeNumber(0, 116, 7)
  if (size < 8 ** 11) writeNumber(size, 124, 11)
  else {
    block[124] = 0x80
    block.writeBigUInt64BE(BigInt(size), 128)
  }
  writeNumber(Math.min(Math.max(0, Math.floor(mtime)), 8 ** 11 - 1), 136, 11)
  block.fill(' ', 148, 156)
  block.write(types[type], 156)
  link?.copy(block, 157, 0, 100)
  block.write('ustar  \0', 257)
  writeNumber(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  )
  block[154] = 0
  return block
}
