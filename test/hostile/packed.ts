/** Bodies that are packed as small as they can be, for every route that takes one. */
import { gzipSync } from 'node:zlib'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Account, pathOf } from '../support/account.ts'

export const routesWithBody = Object.values<Endpoint>(endpoints).filter(({ body }) => body !== undefined)

/** A body of 10 KiB that is ten times the largest one once it is unpacked. */
const packed = gzipSync(Buffer.alloc(10 * limits.bodyBytes, ' '))

/** Sends it to a route. @returns what the route answers, or its status for what is no problem */
export async function sendPacked(url: string, account: Account, endpoint: Endpoint): Promise<string> {
  const id = `sbx_${'0'.repeat(26)}`
  const path = pathOf(endpoint as never, { params: { id, exec_id: id, key_id: id, name: 'a' } as never })
  const credential = { none: undefined, token: account.token, key: account.key }[endpoint.credential]
  const response = await fetch(`${url}${path}`, {
    method: endpoint.method,
    headers: {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      accept: 'application/json, text/event-stream',
      ...(credential && { authorization: `Bearer ${credential}` }),
    },
    body: packed,
  })
  const text = await response.text()
  return text.startsWith('{') ? JSON.parse(text).code : String(response.status)
}
