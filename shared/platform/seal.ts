/**
 * Encrypts secrets, environments and command lines. Secrets and environments are sealed to a public key
 * (X25519, HKDF, AES-256-GCM; 0.2 ms): the API can seal them, but only workers have SECRETS_KEY and can open
 * them. The API displays command lines, so those are sealed under RPC_KEY, which the API and workers share.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

const formats = { toPublicKey: 2, underRpcKey: 3 }
const bytes = { keyId: 4, publicKey: 32, iv: 12, tag: 16 }

interface Sealer {
  /** @param context identifies the text's use, such as `sandbox-env sbx_…`; `open` needs the same value */
  seal(text: string, context: string): Buffer
}

export interface Opener {
  /** @throws if the data was sealed under another key or context, or was modified */
  open(sealed: Uint8Array, context: string): string
}

/** Returns a sealer for secrets and environments, given SECRETS_PUBLIC_KEY. */
export function makeSealer(publicKey: string): Sealer {
  const raw = Buffer.from(publicKey, 'base64url')
  const theirs = publicKeyFrom(raw)
  return {
    seal(text, context) {
      const once = generateKeyPairSync('x25519')
      const onceRaw = rawOf(once.publicKey)
      const { key, iv } = agree(once.privateKey, theirs, onceRaw, raw)
      return Buffer.concat([
        Buffer.of(formats.toPublicKey),
        idOf(raw),
        onceRaw,
        encrypt(key, iv, text, context),
      ])
    },
  }
}

/** Returns an opener for secrets and environments, given all values of SECRETS_KEY. */
export function makeOpener(secrets: readonly string[]): Opener {
  const pairs = secrets.map((secret) => {
    const ours = privateKeyOf(secret)
    const raw = rawOf(createPublicKey(ours))
    return { ours, raw, id: idOf(raw) }
  })
  return {
    open(sealed, context) {
      const reader = readerOf(sealed, formats.toPublicKey)
      const { ours, raw } = findKey(pairs, reader.take(bytes.keyId))
      const onceRaw = reader.take(bytes.publicKey)
      const { key, iv } = agree(ours, publicKeyFrom(onceRaw), onceRaw, raw)
      return decrypt(key, iv, reader.rest(), context)
    },
  }
}

/** Seals command lines under the first RPC_KEY, and opens them with any of the given keys. */
export function makeBox(secrets: readonly string[]): Sealer & Opener {
  const keys = secrets.map((secret) => {
    const key = deriveKey(secret, 'sandlot command lines')
    return { key: createSecretKey(key), id: idOf(key) }
  })
  return {
    seal(text, context) {
      const { key, id } = keys[0]!
      const iv = randomBytes(bytes.iv)
      return Buffer.concat([Buffer.of(formats.underRpcKey), id, iv, encrypt(key, iv, text, context)])
    },
    open(sealed, context) {
      const reader = readerOf(sealed, formats.underRpcKey)
      const { key } = findKey(keys, reader.take(bytes.keyId))
      return decrypt(key, reader.take(bytes.iv), reader.rest(), context)
    },
  }
}

/** Derives a key for one purpose. The key reveals nothing about the keys for other purposes. */
export const deriveKey = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))

/** Returns the default RPC_KEY, which reveals nothing about SECRETS_KEY. */
export const rpcKeyOf = (secretsKey: string): string =>
  deriveKey(secretsKey, 'sandlot calls key').toString('base64url')

/** Returns SECRETS_PUBLIC_KEY: 32 bytes in base64url. */
export const publicKeyOf = (secretsKey: string): string =>
  rawOf(createPublicKey(privateKeyOf(secretsKey))).toString('base64url')

/** Constant prefixes of DER-encoded X25519 keys (RFC 8410). */
const der = {
  private: Buffer.from('302e020100300506032b656e04220420', 'hex'),
  public: Buffer.from('302a300506032b656e032100', 'hex'),
}

const privateKeyOf = (secret: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([der.private, deriveKey(secret, 'sandlot private key')]),
    format: 'der',
    type: 'pkcs8',
  })

const publicKeyFrom = (raw: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([der.public, raw]), format: 'der', type: 'spki' })

const rawOf = (key: KeyObject): Buffer =>
  key.export({ format: 'der', type: 'spki' }).subarray(der.public.length)

/** Derives a key and an IV that never repeat, because each string is sealed with a new key pair. */
function agree(ours: KeyObject, theirs: KeyObject, onceRaw: Buffer, raw: Buffer) {
  const shared = diffieHellman({ privateKey: ours, publicKey: theirs })
  const salt = Buffer.concat([onceRaw, raw])
  const made = Buffer.from(hkdfSync('sha256', shared, salt, 'sandlot sealed', 32 + bytes.iv))
  return { key: made.subarray(0, 32), iv: made.subarray(32) }
}

const idOf = (key: Buffer): Buffer => createHash('sha256').update(key).digest().subarray(0, bytes.keyId)

function findKey<K extends { id: Buffer }>(keys: K[], id: Buffer): K {
  const found = keys.find((candidate) => candidate.id.equals(id))
  if (!found) throw new Error('sealed under a key that is not listed')
  return found
}

function encrypt(key: Buffer | KeyObject, iv: Buffer, text: string, context: string): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([cipher.getAuthTag(), body])
}

function decrypt(key: Buffer | KeyObject, iv: Buffer, sealed: Buffer, context: string): string {
  const decipher = createDecipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(0, bytes.tag))
  return Buffer.concat([decipher.update(sealed.subarray(bytes.tag)), decipher.final()]).toString('utf8')
}

function readerOf(sealed: Uint8Array, format: number) {
  const buffer = Buffer.from(sealed)
  if (buffer[0] !== format) throw new Error('sealed in an unknown format')
  let at = 1
  return {
    take: (length: number) => {
      at += length
      return buffer.subarray(at - length, at)
    },
    rest: () => buffer.subarray(at),
  }
}
