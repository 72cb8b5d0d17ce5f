/**
 * What the client needs of each endpoint to call it, without loading a schema. `npm run docs` writes the table from the
 * endpoints; the compiler finds what differs from them.
 */
import type { Endpoint } from './endpoint.ts'
import type { EndpointName, endpoints } from './index.ts'

export type Route = Pick<Endpoint, 'method' | 'path' | 'credential'>

type Declared = { [Name in EndpointName]: Pick<(typeof endpoints)[Name], keyof Route> }

export const routes = {
  signUp: { method: 'POST', path: '/v1/auth/signup', credential: 'none' },
  logIn: { method: 'POST', path: '/v1/auth/login', credential: 'none' },
  createApiKey: { method: 'POST', path: '/v1/api-keys', credential: 'token' },
  listApiKeys: { method: 'GET', path: '/v1/api-keys', credential: 'token' },
  revokeApiKey: { method: 'DELETE', path: '/v1/api-keys/:key_id', credential: 'token' },
  rotateApiKey: { method: 'POST', path: '/v1/api-keys/:key_id/rotate', credential: 'token' },
  createSandbox: { method: 'POST', path: '/v1/sandboxes', credential: 'key' },
  listSandboxes: { method: 'GET', path: '/v1/sandboxes', credential: 'key' },
  getSandbox: { method: 'GET', path: '/v1/sandboxes/:id', credential: 'key' },
  resetSandbox: { method: 'POST', path: '/v1/sandboxes/:id/reset', credential: 'key' },
  destroySandbox: { method: 'DELETE', path: '/v1/sandboxes/:id', credential: 'key' },
  execCommand: { method: 'POST', path: '/v1/sandboxes/:id/exec', credential: 'key' },
  listExecs: { method: 'GET', path: '/v1/sandboxes/:id/exec', credential: 'key' },
  getExec: { method: 'GET', path: '/v1/sandboxes/:id/exec/:exec_id', credential: 'key' },
  streamExec: { method: 'GET', path: '/v1/sandboxes/:id/exec/:exec_id/stream', credential: 'key' },
  writeExecStdin: { method: 'POST', path: '/v1/sandboxes/:id/exec/:exec_id/stdin', credential: 'key' },
  readExecOutput: { method: 'GET', path: '/v1/sandboxes/:id/exec/:exec_id/output', credential: 'key' },
  stopExec: { method: 'DELETE', path: '/v1/sandboxes/:id/exec/:exec_id', credential: 'key' },
  attachExec: { method: 'GET', path: '/v1/sandboxes/:id/exec/:exec_id/attach', credential: 'key' },
  viewFile: { method: 'GET', path: '/v1/sandboxes/:id/files/view', credential: 'key' },
  createFile: { method: 'POST', path: '/v1/sandboxes/:id/files/create', credential: 'key' },
  editFile: { method: 'POST', path: '/v1/sandboxes/:id/files/edit', credential: 'key' },
  listFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/ls', credential: 'key' },
  globFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/glob', credential: 'key' },
  grepFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/grep', credential: 'key' },
  readRawFile: { method: 'GET', path: '/v1/sandboxes/:id/files/raw', credential: 'key' },
  writeRawFile: { method: 'PUT', path: '/v1/sandboxes/:id/files/raw', credential: 'key' },
  connectPort: { method: 'GET', path: '/v1/sandboxes/:id/ports/:port', credential: 'key' },
  getAllowlist: { method: 'GET', path: '/v1/allowlist', credential: 'key' },
  setAllowlist: { method: 'PUT', path: '/v1/allowlist', credential: 'key' },
  clearAllowlist: { method: 'DELETE', path: '/v1/allowlist', credential: 'key' },
  checkAllowlist: { method: 'POST', path: '/v1/allowlist/check', credential: 'key' },
  createSecret: { method: 'POST', path: '/v1/secrets', credential: 'key' },
  listSecrets: { method: 'GET', path: '/v1/secrets', credential: 'key' },
  deleteSecret: { method: 'DELETE', path: '/v1/secrets/:name', credential: 'key' },
  getAccount: { method: 'GET', path: '/v1/account', credential: 'key' },
  getUsage: { method: 'GET', path: '/v1/account/usage', credential: 'key' },
  changePassword: { method: 'PUT', path: '/v1/account/password', credential: 'token' },
  endSessions: { method: 'DELETE', path: '/v1/account/sessions', credential: 'token' },
  callMcp: { method: 'POST', path: '/v1/mcp', credential: 'key' },
  getOpenApi: { method: 'GET', path: '/v1/openapi.json', credential: 'none' },
  getDocs: { method: 'GET', path: '/v1/docs', credential: 'none' },
} as const satisfies Declared
