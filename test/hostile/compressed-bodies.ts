import { gzipSync } from 'node:zlib'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Account, pathOf } from '../support/account.ts'

export const routesWithBody = Object.values<Endpoint>(endpoints).filter(({ body }) => body !== undefined)

/** 10 KiB that expand to ten times the largest allowed body. */
const compressed = gzipSync(Buffer.alloc(10 * limits.bodyBytes, ' '))

/** @returns the error code, or the status if the response is not a problem document */
export async function sendCompressed(url: string, account: Account, endpoint: Endpoint): Promise<string> {
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
    body: compressed,
  })
  const text = await response.text()
  return text.startsWith('{') ? JSON.parse(text).code : String(response.status)
}
