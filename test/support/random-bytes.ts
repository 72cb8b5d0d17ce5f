import fc from 'fast-check'

/** Sequences that are difficult for decoders, shells and terminals. */
const pieces = [
  [0],
  [0x0a],
  [0x0d, 0x0a],
  [0x1b, 0x5b, 0x33, 0x31, 0x6d],
  [0x7f],
  [0x80],
  [0xe9],
  [0xff, 0xfe],
  // Invalid UTF-8: overlong, surrogate, out of range, incomplete.
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf0, 0x9f, 0x90],
  ...['\ufeff', '\ufffd', '\u0085', '\u2028', 'é', '🐎', "'", '"', '\\', '$(id)', '%00', 'text '].map(
    (text) => [...Buffer.from(text)],
  ),
].map((piece) => Buffer.from(piece))

const trip = fc
  .array(fc.constantFrom(...pieces), { maxLength: 40 })
  .map((some) => new Uint8Array(Buffer.concat(some)))
const long = fc
  .tuple(fc.constantFrom(...pieces), fc.integer({ min: 1, max: 20_000 }), fc.uint8Array({ maxLength: 3 }))
  .map(([piece, times, end]) => Buffer.concat([Buffer.alloc(piece.length * times, piece), end]))
const text = fc.string({ unit: 'binary', maxLength: 60 }).map((some) => Buffer.from(some))

export const someBytes = fc
  .oneof(fc.uint8Array({ maxLength: 3_000 }), trip, long, text)
  .map((bytes) => Buffer.from(bytes))

/** A file name of 1 to 255 bytes, without NUL or slash. */
export const someName = fc
  .oneof(fc.uint8Array({ minLength: 1, maxLength: 255 }), trip, text)
  .map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0 && byte !== 47)).subarray(0, 255))
  .filter((name) => name.length > 0 && !['.', '..'].includes(name.toString()))

const characters = [
  '\0',
  '\ud83d',
  '\udc0e',
  '🐎',
  '\ufeff',
  '\ufffd',
  '\u2028',
  '\x1b[31m',
  'a',
  "'",
  '\n',
  '\r',
]

/** Any JavaScript string, including NUL and lone surrogates. */
export const someText = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 30 })
      .map((units) => String.fromCharCode(...units)),
  },
  { weight: 2, arbitrary: fc.array(fc.constantFrom(...characters)).map((some) => some.join('')) },
)

export const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString()).equals(bytes)
