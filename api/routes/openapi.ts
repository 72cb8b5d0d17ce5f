import { Readable } from 'node:stream'
import { openApi as contract } from '../../shared/contract/openapi.ts'
import { docsPage } from '../http/docs-page.ts'
import { describeApi } from '../http/openapi.ts'
import { route, StreamReply } from '../http/route.ts'

export const getOpenApi = route(contract.getOpenApi, async (_, { context }) => describeApi(context.settings))

export const getDocs = route(contract.getDocs, async (_, { context }) => {
  const headers = { 'content-type': 'text/html; charset=utf-8' }
  return new StreamReply({ body: Readable.from([docsPage(context.settings)]), status: 200, headers })
})
