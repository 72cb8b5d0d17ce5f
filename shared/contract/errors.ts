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
  account_suspended: { status: 403, title: 'The account is suspended' },
  permission_denied: { status: 403, title: 'The sandbox may not do this' },
  read_only: { status: 403, title: 'This part of the sandbox is read-only' },
  not_found: { status: 404, title: 'There is no such thing' },
  file_not_found: { status: 404, title: 'There is no such file' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  email_taken: { status: 409, title: 'The email address has an account already' },
  file_exists: { status: 409, title: 'The file exists already' },
  is_directory: { status: 409, title: 'The path is a directory' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for another request' },
  sandbox_starting: { status: 409, title: 'The sandbox is still starting' },
  sandbox_destroyed: { status: 410, title: 'The sandbox is destroyed' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  rate_limited: { status: 429, title: 'Too many requests' },
  concurrent_sandbox_limit_reached: { status: 429, title: 'Too many sandboxes at once' },
  monthly_usage_limit_reached: { status: 429, title: "The month's sandbox-hours are used up" },
  internal_error: { status: 500, title: 'Something went wrong here' },
  sandbox_start_failed: { status: 502, title: 'The sandbox did not start' },
  unavailable: { status: 503, title: 'The service cannot do this right now' },
  no_space: { status: 507, title: "The sandbox's disk is full" },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof errors
