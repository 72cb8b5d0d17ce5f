/**
 * Every route of the API as plain data: all that the client needs to call it, without loading a schema. The schemas are
 * in the file of the route's family beside this one.
 */

export type Credential = 'none' | 'token' | 'key'
/**
 * The bucket that a request counts against: per account, or per address where there is no account. Each API process
 * counts `reads` and `changes` by itself, so that they do not need Redis. A login also counts against its e-mail
 * address (`login_account`).
 */
export type Bucket =
  | 'sandbox_ops'
  | 'sandbox_lifecycle'
  | 'signup'
  | 'login'
  | 'login_account'
  | 'mcp'
  | 'reads'
  | 'changes'

/** `run` keys run commands and work with files and sandboxes; `full` ones also change what binds those. */
export type Scope = 'full' | 'run'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `:name` marks a parameter. */
  path: `/${string}`
  credential: Credential
  /** The least scope of key that the route takes. */
  scope?: Scope
  bucket: Bucket
  /** The status of success. */
  status: 101 | 200 | 201 | 204
}

/** Each route that takes a key must name a scope, so none is open to `run` keys by oversight. */
type DeclaredRoute = Route &
  ({ credential: 'key'; scope: Scope } | { credential: Exclude<Credential, 'key'> })

export const routes = {
  signUp: { method: 'POST', path: '/v1/auth/signup', credential: 'none', bucket: 'signup', status: 201 },
  logIn: { method: 'POST', path: '/v1/auth/login', credential: 'none', bucket: 'login', status: 200 },

  createApiKey: { method: 'POST', path: '/v1/api-keys', credential: 'token', bucket: 'changes', status: 201 },
  listApiKeys: { method: 'GET', path: '/v1/api-keys', credential: 'token', bucket: 'reads', status: 200 },
  revokeApiKey: {
    method: 'DELETE',
    path: '/v1/api-keys/:key_id',
    credential: 'token',
    bucket: 'changes',
    status: 204,
  },

  rotateApiKey: {
    method: 'POST',
    path: '/v1/api-keys/:key_id/rotate',
    credential: 'token',
    bucket: 'changes',
    status: 201,
  },

  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_lifecycle',
    status: 201,
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },
  getSandbox: {
    method: 'GET',
    path: '/v1/sandboxes/:id',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },
  destroySandbox: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_lifecycle',
    status: 200,
  },

  execCommand: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  listExecs: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  getExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  streamExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/stream',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  writeExecStdin: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  readExecOutput: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/output',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  stopExec: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  attachExec: {
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/attach',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 101,
  },

  viewFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/view',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  createFile: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/create',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 201,
  },
  editFile: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/edit',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  listFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/ls',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  globFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/glob',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  grepFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/grep',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  readRawFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/raw',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 200,
  },
  writeRawFile: {
    method: 'PUT',
    path: '/v1/sandboxes/:id/files/raw',
    credential: 'key',
    scope: 'run',
    bucket: 'sandbox_ops',
    status: 201,
  },

  getAllowlist: {
    method: 'GET',
    path: '/v1/allowlist',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },
  setAllowlist: {
    method: 'PUT',
    path: '/v1/allowlist',
    credential: 'key',
    scope: 'full',
    bucket: 'changes',
    status: 200,
  },
  clearAllowlist: {
    method: 'DELETE',
    path: '/v1/allowlist',
    credential: 'key',
    scope: 'full',
    bucket: 'changes',
    status: 204,
  },
  checkAllowlist: {
    method: 'POST',
    path: '/v1/allowlist/check',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },

  createSecret: {
    method: 'POST',
    path: '/v1/secrets',
    credential: 'key',
    scope: 'full',
    bucket: 'changes',
    status: 201,
  },
  listSecrets: {
    method: 'GET',
    path: '/v1/secrets',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },
  deleteSecret: {
    method: 'DELETE',
    path: '/v1/secrets/:name',
    credential: 'key',
    scope: 'full',
    bucket: 'changes',
    status: 204,
  },

  getAccount: {
    method: 'GET',
    path: '/v1/account',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },
  getUsage: {
    method: 'GET',
    path: '/v1/account/usage',
    credential: 'key',
    scope: 'run',
    bucket: 'reads',
    status: 200,
  },

  changePassword: {
    method: 'PUT',
    path: '/v1/account/password',
    credential: 'token',
    bucket: 'login',
    status: 200,
  },
  endSessions: {
    method: 'DELETE',
    path: '/v1/account/sessions',
    credential: 'token',
    bucket: 'changes',
    status: 204,
  },

  callMcp: { method: 'POST', path: '/v1/mcp', credential: 'key', scope: 'run', bucket: 'mcp', status: 200 },

  getOpenApi: { method: 'GET', path: '/v1/openapi.json', credential: 'none', bucket: 'reads', status: 200 },
  getDocs: { method: 'GET', path: '/v1/docs', credential: 'none', bucket: 'reads', status: 200 },
} as const satisfies Record<string, DeclaredRoute>

export type RouteName = keyof typeof routes
