/** Every endpoint, by its name. */
import { account } from './account.ts'
import { allowlist } from './allowlist.ts'
import { apiKeys } from './api-keys.ts'
import { auth, sessions } from './auth.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { mcp } from './mcp.ts'
import { openApi } from './openapi.ts'
import { sandboxes } from './sandboxes.ts'
import { secrets } from './secrets.ts'

/** In the order of the API description. */
export const endpoints = {
  ...auth,
  ...apiKeys,
  ...sandboxes,
  ...exec,
  ...files,
  ...allowlist,
  ...secrets,
  ...account,
  ...sessions,
  ...mcp,
  ...openApi,
}
export type EndpointName = keyof typeof endpoints
