import type { ServedRoute } from '../http/route.ts'
import * as account from './account.ts'
import * as allowlist from './allowlist.ts'
import * as apiKeys from './api-keys.ts'
import * as auth from './auth.ts'
import * as exec from './exec.ts'
import * as files from './files.ts'
import { callMcp, resumeMcp } from './mcp.ts'
import * as openApi from './openapi.ts'
import * as ports from './ports.ts'
import * as sandboxes from './sandboxes.ts'
import * as secrets from './secrets.ts'

/** The modules that define routes. Every export of these modules must be a route. */
const families = [auth, apiKeys, sandboxes, exec, files, ports, allowlist, secrets, account, openApi]
const routes: ServedRoute[] = families.flatMap((family) => Object.values(family))

export const served: ServedRoute[] = [...routes, callMcp(routes), resumeMcp(routes)]
