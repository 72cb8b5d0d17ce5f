import { type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface RawRequest {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
  /** Source address, such as 127.0.0.2. */
  from?: string
}

export interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends a request over a new connection. */
export function send(
  url: string,
  { method = 'GET', headers = {}, body, from }: RawRequest = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers, agent: false, ...(from ? { localAddress: from } : {}) })
    outgoing.on('response', (response) => {
      text(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        reject,
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Returns the status of a process's /readyz response, and the state of each component. */
export async function readinessOf({ internalUrl }: { internalUrl: string }) {
  const { status, text } = await send(`${internalUrl}/readyz`)
  return { status, parts: JSON.parse(text).parts as Record<string, string> }
}
