import { openApi as contract } from '../../shared/contract/openapi.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import { makeDocsPage } from '../http/docs-page.ts'
import { describeApi } from '../http/openapi.ts'
import { JsonReply, route } from '../http/route.ts'

const openApiOf = encodeOnce((settings) => JSON.stringify(describeApi(settings)))
const docsPageOf = encodeOnce((settings) => makeDocsPage(describeApi(settings)))

export const getOpenApi = route(contract.getOpenApi, async (_, { context }) =>
  document(openApiOf(context.settings), 'application/json; charset=utf-8'),
)

export const getDocs = route(contract.getDocs, async (_, { context }) =>
  document(docsPageOf(context.settings), 'text/html; charset=utf-8'),
)

const document = (bytes: Buffer, type: string) =>
  new JsonReply(bytes as never, { headers: { 'content-type': type } })

/**
 * Encodes a document once for all responses, so that unread responses to unauthenticated requests use no
 * extra memory.
 */
function encodeOnce(make: (settings: Settings) => string): (settings: Settings) => Buffer {
  const made = new WeakMap<Settings, Buffer>()
  return (settings) => {
    const bytes = made.get(settings) ?? Buffer.from(make(settings))
    made.set(settings, bytes)
    return bytes
  }
}
