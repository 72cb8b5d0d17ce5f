/**
 * Sealing of what a client entrusts to us before it reaches Postgres or Redis: AES-256-GCM under
 * keys that neither of them sees. Each text is bound to the place it is for.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

const version = 1
const bytes = { keyId: 4, iv: 12, tag: 16 }

export interface Sealer {
  /** @param place what the text belongs to, such as `sandbox-env sbx_…`; needed again to open it */
  seal(text: string, place: string): Buffer
  /** @throws when the key is gone, the place is another, or a bit was changed */
  open(sealed: Uint8Array, place: string): string
}

/** @param secrets newest first: the first seals, all of them open */
export function makeSealer(secrets: readonly string[]): Sealer {
  const keys = secrets.map((secret) => {
    const key = deriveKey(secret, 'sandlot seal')
    return { key, id: createHash('sha256').update(key).digest().subarray(0, bytes.keyId) }
  })
  const newest = keys[0]
  if (!newest) throw new Error('SECRETS_KEY is empty')
  return {
    seal(text, place) {
      const iv = randomBytes(bytes.iv)
      const cipher = createCipheriv('aes-256-gcm', newest.key, iv).setAAD(Buffer.from(place))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(version), newest.id, iv, cipher.getAuthTag(), body])
    },
    open(sealed, place) {
      const reader = readerOf(Buffer.from(sealed))
      if (reader.take(1)[0] !== version) throw new Error('sealed in a form that this version does not know')
      const id = reader.take(bytes.keyId)
      const found = keys.find((candidate) => candidate.id.equals(id))
      if (!found) throw new Error('sealed under a key that SECRETS_KEY no longer lists')
      const iv = reader.take(bytes.iv)
      const decipher = createDecipheriv('aes-256-gcm', found.key, iv).setAAD(Buffer.from(place))
      decipher.setAuthTag(reader.take(bytes.tag))
      return Buffer.concat([decipher.update(reader.rest()), decipher.final()]).toString('utf8')
    },
  }
}

/** 32 bytes for one purpose; two purposes of one secret tell nothing of each other. */
export const deriveKey = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))

/** What CALLS_KEY is unless it is set: who has it learns nothing of the SECRETS_KEY that it is made of. */
export const callsKeyOf = (secretsKey: string): string =>
  deriveKey(secretsKey, 'sandlot calls key').toString('base64url')

function readerOf(buffer: Buffer) {
  let at = 0
  return {
    take: (length: number) => {
      at += length
      return buffer.subarray(at - length, at)
    },
    rest: () => buffer.subarray(at),
  }
}
