/**
 * Every route of the API as plain data: what the client needs to call one, and nothing to load.
 * The schemas of each stand in the file of its family beside this one.
 */

export type Credential = 'none' | 'token' | 'key'
export type Bucket = 'sandbox_ops' | 'sandbox_lifecycle' | 'signup' | 'login'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `:name` marks a parameter. */
  path: `/${string}`
  credential: Credential
  bucket?: Bucket
  /** The status of success. */
  status: 101 | 200 | 201 | 204
}

export const routes = {
  signUp: { method: 'POST', path: '/v1/auth/signup', credential: 'none', bucket: 'signup', status: 201 },
  logIn: { method: 'POST', path: '/v1/auth/login', credential: 'none', bucket: 'login', status: 200 },

  createApiKey: { method: 'POST', path: '/v1/api-keys', credential: 'token', status: 201 },
  listApiKeys: { method: 'GET', path: '/v1/api-keys', credential: 'token', status: 200 },
  revokeApiKey: { method: 'DELETE', path: '/v1/api-keys/:key_id', credential: 'token', status: 204 },

  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    credential: 'key',
    bucket: 'sandbox_lifecycle',
    status: 201,
  },
  listSandboxes: { method: 'GET', path: '/v1/sandboxes', credential: 'key', status: 200 },
  getSandbox: { method: 'GET', path: '/v1/sandboxes/:id', credential: 'key', status: 200 },
  destroySandbox: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id',
    credential: 'key',
    bucket: 'sandbox_lifecycle',
    status: 200,
  },

  execCommand: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  listExecs: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  getExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  streamExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/stream',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  writeExecStdin: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  readExecOutput: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/output',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  stopExec: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  attachExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/attach',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 101,
  },

  viewFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/view',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  createFile: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/create',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 201,
  },
  editFile: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/edit',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  listFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/ls',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  globFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/glob',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  grepFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/grep',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  readRawFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/raw',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 200,
  },
  writeRawFile: {
    method: 'PUT',
    path: '/v1/sandboxes/:id/files/raw',
    credential: 'key',
    bucket: 'sandbox_ops',
    status: 201,
  },

  getAllowlist: { method: 'GET', path: '/v1/allowlist', credential: 'key', status: 200 },
  setAllowlist: { method: 'PUT', path: '/v1/allowlist', credential: 'key', status: 200 },
  clearAllowlist: { method: 'DELETE', path: '/v1/allowlist', credential: 'key', status: 204 },
  checkAllowlist: { method: 'POST', path: '/v1/allowlist/check', credential: 'key', status: 200 },

  createSecret: { method: 'POST', path: '/v1/secrets', credential: 'key', status: 201 },
  listSecrets: { method: 'GET', path: '/v1/secrets', credential: 'key', status: 200 },
  deleteSecret: { method: 'DELETE', path: '/v1/secrets/:name', credential: 'key', status: 204 },

  getAccount: { method: 'GET', path: '/v1/account', credential: 'key', status: 200 },
  getUsage: { method: 'GET', path: '/v1/account/usage', credential: 'key', status: 200 },

  callMcp: { method: 'POST', path: '/v1/mcp', credential: 'key', status: 200 },

  getOpenApi: { method: 'GET', path: '/v1/openapi.json', credential: 'none', status: 200 },
  getDocs: { method: 'GET', path: '/v1/docs', credential: 'none', status: 200 },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof routes
