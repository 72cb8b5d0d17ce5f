import { account } from './account.ts'
import { allowlist } from './allowlist.ts'
import { apiKeys } from './api-keys.ts'
import { auth, sessions } from './auth.ts'
import type { Endpoint } from './endpoint.ts'
import { exec } from './exec.ts'
import { fileChanges } from './file-changes.ts'
import { files } from './files.ts'
import { mcp } from './mcp.ts'
import { openApi } from './openapi.ts'
import { ports } from './ports.ts'
import { sandboxes, sandboxesByName } from './sandboxes.ts'
import { secrets } from './secrets.ts'

export const families: Record<string, { about: string; endpoints: Record<string, Endpoint> }> = {
  'Sign-up and login': { about: 'Create an account and get session tokens.', endpoints: auth },
  'API keys': {
    about: 'API keys authenticate all requests except those that manage the account.',
    endpoints: apiKeys,
  },
  Sandboxes: {
    about: 'Isolated Linux environments with a limited lifetime.',
    endpoints: { ...sandboxes, ...sandboxesByName },
  },
  Commands: { about: 'Run commands in a sandbox and get their output and exit status.', endpoints: exec },
  Files: { about: 'Read, write and search files in a sandbox.', endpoints: { ...files, ...fileChanges } },
  Ports: { about: 'Connect to TCP ports in a sandbox.', endpoints: ports },
  Allowlist: { about: 'Restrict the commands that an account may run.', endpoints: allowlist },
  Secrets: { about: 'Environment variables whose values are never returned.', endpoints: secrets },
  Account: {
    about: 'Get usage and limits, change the password, end sessions and delete the account.',
    endpoints: { ...account, ...sessions },
  },
  Agents: { about: 'Operations on sandboxes, commands and files as MCP tools for agents.', endpoints: mcp },
  Description: { about: 'This API description.', endpoints: openApi },
}

export const endpoints = {
  ...auth,
  ...apiKeys,
  ...sandboxes,
  ...sandboxesByName,
  ...exec,
  ...files,
  ...fileChanges,
  ...ports,
  ...allowlist,
  ...secrets,
  ...account,
  ...sessions,
  ...mcp,
  ...openApi,
}
export type EndpointName = keyof typeof endpoints
