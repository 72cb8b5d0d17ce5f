/**
 * The one table of error codes: what each means in HTTP. Plain data, so that the client can
 * turn a code into its exit code without loading anything.
 */

export const errors = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  missing_credentials: { status: 401, title: 'Credentials are missing' },
  invalid_credentials: { status: 401, title: 'The credentials are not valid' },
  token_expired: { status: 401, title: 'The session token has expired' },
  wrong_credential_type: { status: 403, title: 'This is the wrong kind of credential' },
  scope_not_allowed: { status: 403, title: 'The API key is not for this' },
  account_suspended: { status: 403, title: 'The account is suspended' },
  origin_not_allowed: { status: 403, title: 'Pages of this origin may not call' },
  command_not_allowed: { status: 403, title: 'The command allowlist refuses this command' },
  permission_denied: { status: 403, title: 'The sandbox may not do this' },
  read_only: { status: 403, title: 'This part of the sandbox is read-only' },
  not_found: { status: 404, title: 'There is no such thing' },
  file_not_found: { status: 404, title: 'There is no such file' },
  exec_not_found: { status: 404, title: 'There is no such command' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  body_too_slow: { status: 408, title: 'The body came too slowly' },
  email_taken: { status: 409, title: 'The email address has an account already' },
  api_key_limit_reached: { status: 409, title: 'The account has too many API keys' },
  file_exists: { status: 409, title: 'The file exists already' },
  is_directory: { status: 409, title: 'The path is a directory' },
  edit_no_match: { status: 409, title: 'The text to replace is not in the file' },
  edit_not_unique: { status: 409, title: 'The text to replace is in the file more than once' },
  exec_finished: { status: 409, title: 'The command has ended' },
  stdin_offset_conflict: { status: 409, title: 'The bytes do not follow what was sent before' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for another request' },
  sandbox_starting: { status: 409, title: 'The sandbox is still starting' },
  sandbox_exhausted: { status: 409, title: 'The sandbox has no processes, memory or disk left' },
  sandbox_destroyed: { status: 410, title: 'The sandbox is destroyed' },
  file_changed: { status: 412, title: 'The file has changed' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  range_not_satisfiable: { status: 416, title: 'These bytes are not there' },
  host_not_allowed: { status: 421, title: 'The service does not go by this name' },
  rate_limited: { status: 429, title: 'Too many requests' },
  concurrent_sandbox_limit_reached: { status: 429, title: 'Too many sandboxes at once' },
  monthly_usage_limit_reached: { status: 429, title: "The month's sandbox-hours are used up" },
  internal_error: { status: 500, title: 'Something went wrong here' },
  sandbox_start_failed: { status: 502, title: 'The sandbox did not start' },
  unavailable: { status: 503, title: 'The service cannot do this right now' },
  no_space: { status: 507, title: "The sandbox's disk is full" },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof errors
