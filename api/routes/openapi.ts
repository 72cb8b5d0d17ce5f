import { getOpenApi } from '../../shared/contract/index.ts'
import type { App } from '../app.ts'
import { describeApi } from '../openapi.ts'
import { route } from '../route.ts'

export const openApi = (_app: App) => [route(getOpenApi, async () => describeApi())]
