/**
 * The API's routes, so that the client can send requests without loading schemas. `npm run docs` generates
 * this table.
 */
import type { Endpoint } from './endpoint.ts'
import type { EndpointName, endpoints } from './index.ts'

export type Route = Pick<Endpoint, 'method' | 'path' | 'credential' | 'repeat'>

type Declared = { [Name in EndpointName]: Pick<(typeof endpoints)[Name], keyof Route> }

export const routes = {
  signUp: { method: 'POST', path: '/v1/auth/signup', credential: 'none', repeat: 'no' },
  logIn: { method: 'POST', path: '/v1/auth/login', credential: 'none', repeat: 'yes' },
  createApiKey: { method: 'POST', path: '/v1/api-keys', credential: 'token', repeat: 'no' },
  listApiKeys: { method: 'GET', path: '/v1/api-keys', credential: 'token', repeat: 'yes' },
  revokeApiKey: { method: 'DELETE', path: '/v1/api-keys/:key_id', credential: 'token', repeat: 'gone' },
  rotateApiKey: { method: 'POST', path: '/v1/api-keys/:key_id/rotate', credential: 'token', repeat: 'no' },
  createSandbox: { method: 'POST', path: '/v1/sandboxes', credential: 'key', repeat: 'keyed' },
  listSandboxes: { method: 'GET', path: '/v1/sandboxes', credential: 'key', repeat: 'yes' },
  getSandbox: { method: 'GET', path: '/v1/sandboxes/:id', credential: 'key', repeat: 'yes' },
  updateSandbox: { method: 'PATCH', path: '/v1/sandboxes/:id', credential: 'key', repeat: 'yes' },
  resetSandbox: { method: 'POST', path: '/v1/sandboxes/:id/reset', credential: 'key', repeat: 'yes' },
  destroySandbox: { method: 'DELETE', path: '/v1/sandboxes/:id', credential: 'key', repeat: 'yes' },
  getOrCreateSandbox: {
    method: 'PUT',
    path: '/v1/sandboxes/by-name/:name',
    credential: 'key',
    repeat: 'yes',
  },
  execCommand: { method: 'POST', path: '/v1/sandboxes/:id/exec', credential: 'key', repeat: 'keyed' },
  listExecs: { method: 'GET', path: '/v1/sandboxes/:id/exec', credential: 'key', repeat: 'yes' },
  getExec: { method: 'GET', path: '/v1/sandboxes/:id/exec/:exec_id', credential: 'key', repeat: 'yes' },
  streamExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/stream',
    credential: 'key',
    repeat: 'yes',
  },
  writeExecStdin: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    credential: 'key',
    repeat: 'no',
  },
  readExecOutput: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/output',
    credential: 'key',
    repeat: 'yes',
  },
  stopExec: { method: 'DELETE', path: '/v1/sandboxes/:id/exec/:exec_id', credential: 'key', repeat: 'no' },
  attachExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/attach',
    credential: 'key',
    repeat: 'yes',
  },
  viewFile: { method: 'GET', path: '/v1/sandboxes/:id/files/view', credential: 'key', repeat: 'yes' },
  createFile: { method: 'POST', path: '/v1/sandboxes/:id/files/create', credential: 'key', repeat: 'no' },
  editFile: { method: 'POST', path: '/v1/sandboxes/:id/files/edit', credential: 'key', repeat: 'no' },
  listFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/ls', credential: 'key', repeat: 'yes' },
  watchFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/watch', credential: 'key', repeat: 'yes' },
  statFile: { method: 'GET', path: '/v1/sandboxes/:id/files/stat', credential: 'key', repeat: 'yes' },
  globFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/glob', credential: 'key', repeat: 'yes' },
  grepFiles: { method: 'GET', path: '/v1/sandboxes/:id/files/grep', credential: 'key', repeat: 'yes' },
  readRawFile: { method: 'GET', path: '/v1/sandboxes/:id/files/raw', credential: 'key', repeat: 'yes' },
  writeRawFile: { method: 'PUT', path: '/v1/sandboxes/:id/files/raw', credential: 'key', repeat: 'plain' },
  makeDirectory: { method: 'POST', path: '/v1/sandboxes/:id/files/mkdir', credential: 'key', repeat: 'no' },
  moveFile: { method: 'POST', path: '/v1/sandboxes/:id/files/move', credential: 'key', repeat: 'no' },
  removeFile: { method: 'POST', path: '/v1/sandboxes/:id/files/remove', credential: 'key', repeat: 'no' },
  changeFileMode: { method: 'POST', path: '/v1/sandboxes/:id/files/chmod', credential: 'key', repeat: 'yes' },
  connectPort: { method: 'GET', path: '/v1/sandboxes/:id/ports/:port', credential: 'key', repeat: 'yes' },
  getAllowlist: { method: 'GET', path: '/v1/allowlist', credential: 'key', repeat: 'yes' },
  setAllowlist: { method: 'PUT', path: '/v1/allowlist', credential: 'key', repeat: 'yes' },
  clearAllowlist: { method: 'DELETE', path: '/v1/allowlist', credential: 'key', repeat: 'yes' },
  checkAllowlist: { method: 'POST', path: '/v1/allowlist/check', credential: 'key', repeat: 'yes' },
  createSecret: { method: 'POST', path: '/v1/secrets', credential: 'key', repeat: 'yes' },
  listSecrets: { method: 'GET', path: '/v1/secrets', credential: 'key', repeat: 'yes' },
  deleteSecret: { method: 'DELETE', path: '/v1/secrets/:name', credential: 'key', repeat: 'gone' },
  getAccount: { method: 'GET', path: '/v1/account', credential: 'key', repeat: 'yes' },
  getUsage: { method: 'GET', path: '/v1/account/usage', credential: 'key', repeat: 'yes' },
  changePassword: { method: 'PUT', path: '/v1/account/password', credential: 'token', repeat: 'no' },
  deleteAccount: { method: 'DELETE', path: '/v1/account', credential: 'token', repeat: 'no' },
  endSessions: { method: 'DELETE', path: '/v1/account/sessions', credential: 'token', repeat: 'no' },
  callMcp: { method: 'POST', path: '/v1/mcp', credential: 'key', repeat: 'no' },
  resumeMcp: { method: 'GET', path: '/v1/mcp', credential: 'key', repeat: 'yes' },
  getOpenApi: { method: 'GET', path: '/v1/openapi.json', credential: 'none', repeat: 'yes' },
  getDocs: { method: 'GET', path: '/v1/docs', credential: 'none', repeat: 'yes' },
} as const satisfies Declared
