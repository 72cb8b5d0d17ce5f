/** Every route that is served; the contract's table says what each takes and gives. */
import type { App } from '../app.ts'
import type { ServedRoute } from '../http/route.ts'
import { account } from './account.ts'
import { allowlist } from './allowlist.ts'
import { apiKeys } from './api-keys.ts'
import { auth } from './auth.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { mcp } from './mcp.ts'
import { openApi } from './openapi.ts'
import { sandboxes } from './sandboxes.ts'
import { secrets } from './secrets.ts'

const families = [auth, apiKeys, sandboxes, exec, files, allowlist, secrets, account, openApi]

export function served(app: App): ServedRoute[] {
  const routes = families.flatMap((family) => family(app))
  return [...routes, ...mcp(app, routes)]
}
