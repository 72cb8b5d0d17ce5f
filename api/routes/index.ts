/** Every route that is served; the contract's table says what each takes and gives. */
import type { App } from '../app.ts'
import type { ServedRoute } from '../route.ts'
import { account } from './account.ts'
import { apiKeys } from './api-keys.ts'
import { auth } from './auth.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { openApi } from './openapi.ts'
import { sandboxes } from './sandboxes.ts'

const families = [auth, apiKeys, sandboxes, exec, files, account, openApi]

export const served = (app: App): ServedRoute[] => families.flatMap((family) => family(app))
