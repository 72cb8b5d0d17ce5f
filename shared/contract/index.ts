/** Every endpoint, by its name. */
import { account } from './account.ts'
import { allowlist } from './allowlist.ts'
import { apiKeys } from './api-keys.ts'
import { auth, sessions } from './auth.ts'
import type { Endpoint } from './endpoint.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { mcp } from './mcp.ts'
import { openApi } from './openapi.ts'
import { ports } from './ports.ts'
import { sandboxes } from './sandboxes.ts'
import { secrets } from './secrets.ts'

/** By what they are about. */
export const families: Record<string, { about: string; endpoints: Record<string, Endpoint> }> = {
  'Sign-up and login': { about: 'Accounts begin here, and session tokens.', endpoints: auth },
  'API keys': { about: 'Keys open everything but what manages the account.', endpoints: apiKeys },
  Sandboxes: { about: 'Isolated machines that live for some minutes.', endpoints: sandboxes },
  Commands: { about: 'What runs in a sandbox, its output and its end.', endpoints: exec },
  Files: { about: 'Files in a sandbox.', endpoints: files },
  Ports: { about: 'Connections to what listens in a sandbox.', endpoints: ports },
  Allowlist: { about: 'Which commands an account may run.', endpoints: allowlist },
  Secrets: { about: 'Environment variables that no answer shows.', endpoints: secrets },
  Account: {
    about: 'Usage, limits, password and end of an account.',
    endpoints: { ...account, ...sessions },
  },
  Agents: { about: 'The same as tools, for models.', endpoints: mcp },
  Description: { about: 'What you are reading.', endpoints: openApi },
}

/** In the order of the API description. */
export const endpoints = {
  ...auth,
  ...apiKeys,
  ...sandboxes,
  ...exec,
  ...files,
  ...ports,
  ...allowlist,
  ...secrets,
  ...account,
  ...sessions,
  ...mcp,
  ...openApi,
}
export type EndpointName = keyof typeof endpoints
