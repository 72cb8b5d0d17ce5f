/** Every endpoint, by its name in routes.ts, whose order it has. The compiler asks for each one in its family's file. */
import * as account from './account.ts'
import * as allowlist from './allowlist.ts'
import * as apiKeys from './api-keys.ts'
import * as auth from './auth.ts'
import * as exec from './exec.ts'
import * as files from './files.ts'
import * as mcp from './mcp.ts'
import * as openapi from './openapi.ts'
import { type RouteName, routes } from './routes.ts'
import * as sandboxes from './sandboxes.ts'
import * as secrets from './secrets.ts'

const families = {
  ...account,
  ...allowlist,
  ...apiKeys,
  ...auth,
  ...exec,
  ...files,
  ...mcp,
  ...openapi,
  ...sandboxes,
  ...secrets,
}

export const endpoints = Object.fromEntries(
  (Object.keys(routes) as RouteName[]).map((name) => [name, families[name]]),
) as Pick<typeof families, RouteName>
