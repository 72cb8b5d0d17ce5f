import { Readable } from 'node:stream'
import { getDocs, getOpenApi } from '../../shared/contract/index.ts'
import type { App } from '../app.ts'
import { docsPage } from '../http/docs-page.ts'
import { describeApi } from '../http/openapi.ts'
import { route, Streamed } from '../http/route.ts'

export const openApi = (_app: App) => [
  route(getOpenApi, async () => describeApi()),
  route(getDocs, async () => {
    const headers = { 'content-type': 'text/html; charset=utf-8' }
    return new Streamed(Readable.from([docsPage()]), { status: 200, headers })
  }),
]
