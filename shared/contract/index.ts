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
export const families: Record<string, Record<string, Endpoint>> = {
  'Sign-up and login': auth,
  'API keys': apiKeys,
  Sandboxes: sandboxes,
  Commands: exec,
  Files: files,
  Ports: ports,
  Allowlist: allowlist,
  Secrets: secrets,
  Account: { ...account, ...sessions },
  Agents: mcp,
  Description: openApi,
}

/** What each family is about. */
export const about: Record<string, string> = {
  'Sign-up and login': 'Accounts begin here, and session tokens.',
  'API keys': 'Keys open everything but what manages the account.',
  Sandboxes: 'Isolated machines that live for some minutes.',
  Commands: 'What runs in a sandbox, its output and its end.',
  Files: 'Files in a sandbox.',
  Ports: 'Connections to what listens in a sandbox.',
  Allowlist: 'Which commands an account may run.',
  Secrets: 'Environment variables that no answer shows.',
  Account: 'Usage, limits, password and end of an account.',
  Agents: 'The same as tools, for models.',
  Description: 'What you are reading.',
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
