import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { pathOf } from './account.ts'
import type { SharedSandbox } from './shared.ts'

const mebibyte = 1024 * 1024

export function rawFiles({ world, alice, params }: Pick<SharedSandbox, 'world' | 'alice' | 'params'>) {
  const urlOf = (query: object) => world.url() + pathOf(endpoints.readRawFile, { params, query })
  const authorized = (headers: Record<string, string> = {}) => ({
    authorization: `Bearer ${alice.key}`,
    ...headers,
  })
  const get = (path: string, headers?: Record<string, string>) =>
    fetch(urlOf({ path }), { headers: authorized(headers) })
  const put = async (query: object, body: Buffer | ReadableStream, headers?: Record<string, string>) => {
    const response = await fetch(urlOf(query), {
      method: 'PUT',
      headers: authorized(headers),
      body,
      duplex: 'half',
    } as RequestInit)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  /** Writes and reads a file of `size` bytes. @throws if any byte differs */
  const passBothWays = async (size: number) => {
    const random = randomBytes(Math.min(size, mebibyte))
    const hash = createHash('sha256')
    const blocks = function* () {
      for (let left = size; left > 0; left -= random.length) {
        const block = random.subarray(0, left)
        hash.update(block)
        yield block
      }
    }
    const sent = await put({ path: 'big' }, Readable.toWeb(Readable.from(blocks())) as ReadableStream)
    const sha256 = hash.digest('hex')
    expect(sent.body).toEqual({ path: '/workspace/big', size, sha256 })
    const back = createHash('sha256')
    const response = await get('big')
    for await (const chunk of response.body!) back.update(chunk)
    expect(back.digest('hex')).toBe(sha256)
  }
  return { urlOf, authorized, get, put, passBothWays }
}
