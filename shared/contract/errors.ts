/**
 * HTTP status and title of each error code. The client loads this file to map codes to exit statuses, so the
 * file imports no schemas.
 */

export const errors = {
  invalid_request: { status: 400, title: 'Invalid request' },
  missing_credentials: { status: 401, title: 'Missing credentials' },
  invalid_credentials: { status: 401, title: 'Invalid credentials' },
  token_expired: { status: 401, title: 'Expired session token' },
  wrong_credential_type: { status: 403, title: 'Wrong credential type' },
  scope_not_allowed: { status: 403, title: 'Insufficient API key scope' },
  account_suspended: { status: 403, title: 'Account suspended' },
  origin_not_allowed: { status: 403, title: 'Origin not allowed' },
  command_not_allowed: { status: 403, title: 'Command not allowed' },
  permission_denied: { status: 403, title: 'Permission denied in the sandbox' },
  read_only: { status: 403, title: 'Read-only file system' },
  not_found: { status: 404, title: 'Not found' },
  file_not_found: { status: 404, title: 'File not found' },
  exec_not_found: { status: 404, title: 'Exec not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'Request timeout' },
  email_taken: { status: 409, title: 'Email address already registered' },
  api_key_limit_reached: { status: 409, title: 'API key limit reached' },
  file_exists: { status: 409, title: 'File already exists' },
  is_directory: { status: 409, title: 'Path is a directory' },
  edit_no_match: { status: 409, title: 'Text to replace not found' },
  edit_not_unique: { status: 409, title: 'Text to replace not unique' },
  exec_finished: { status: 409, title: 'Command already finished' },
  stdin_offset_conflict: { status: 409, title: 'Stdin offset conflict' },
  idempotency_conflict: { status: 409, title: 'Idempotency key reused' },
  sandbox_starting: { status: 409, title: 'Sandbox still starting' },
  sandbox_exhausted: { status: 409, title: 'Sandbox resources exhausted' },
  sandbox_destroyed: { status: 410, title: 'Sandbox destroyed' },
  precondition_failed: { status: 412, title: 'Precondition failed' },
  body_too_large: { status: 413, title: 'Request body too large' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  range_not_satisfiable: { status: 416, title: 'Range not satisfiable' },
  host_not_allowed: { status: 421, title: 'Host not allowed' },
  rate_limited: { status: 429, title: 'Rate limit exceeded' },
  concurrent_sandbox_limit_reached: { status: 429, title: 'Sandbox limit reached' },
  monthly_usage_limit_reached: { status: 429, title: 'Monthly usage limit reached' },
  internal_error: { status: 500, title: 'Internal error' },
  sandbox_start_failed: { status: 502, title: 'Sandbox start failed' },
  unavailable: { status: 503, title: 'Service unavailable' },
  disk_full: { status: 507, title: 'Sandbox disk full' },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof errors
