/** The limits of the public API. A limit without a unit in its name is a count. */
export const limits = {
  /** Maximum size of a JSON body for routes that accept files, stdin or arguments. A larger body gets 413. */
  bodyBytes: 1024 * 1024,
  /** Maximum size of a JSON body for routes that do not declare `bodyBytes`. A larger body gets 413. */
  usualBodyBytes: 64 * 1024,
  /** Maximum size of stdout and of stderr in a JSON response. The middle of longer output is omitted. */
  outputBytes: 1024 * 1024,
  /** Maximum amount of retained output per command. Older output is dropped. */
  keptBytes: 8 * 1024 * 1024,
  /** Maximum total amount of retained output for all commands of a sandbox. Older output is dropped. */
  keptBytesOfSandbox: 16 * 1024 * 1024,
  /** Maximum amount of output that a connected reader has not read yet. At this limit, the command blocks. */
  unreadBytes: 4 * 1024 * 1024,
  /** How long a foreground command keeps running after its client has disconnected. */
  graceMs: { default: 2_000, max: 24 * 60 * 60 * 1000 },
  /** Maximum size of the content in one files/view response. Longer content is truncated. */
  viewBytes: 1024 * 1024,
  /** Maximum size of a file for files/edit, both before and after the edit. */
  editBytes: 16 * 1024 * 1024,
  /**
   * Maximum total size of a request's argv and environment. Linux accepts 2 MiB in total, including the
   * sandbox's environment and secrets.
   */
  argumentsBytes: 1024 * 1024 - 64 * 1024,
  /** Maximum size of one argument or environment variable. Linux does not accept longer strings. */
  argumentBytes: 128 * 1024 - 1,
  /** Timeout of a command if the request contains no `timeout_ms`. */
  execTimeoutMs: 60_000,
  /**
   * Maximum number of items in a files/ls, glob or grep response, maximum size of the response's JSON, and
   * maximum depth of files/ls.
   */
  listed: { depth: 32, entries: 10_000, paths: 10_000, matches: 1_000, bytes: 4 * 1024 * 1024 },
  /**
   * Maximum length of a glob pattern, and maximum total length of its brace alternatives. With this limit,
   * matching the slowest path takes less than 0.1 s.
   */
  globCharacters: 1024,
  /**
   * Maximum number of watches in a sandbox on each worker. The limits of `listed` apply to each watch, and
   * its `bytes` to the names and times of the entries.
   */
  watches: 8,
  /** Maximum length of a line in a files/grep response. Longer lines are truncated. */
  grepLineBytes: 2_000,
  /**
   * Maximum number of concurrent streamed responses, and of concurrent uploads, per account on each worker.
   */
  streams: 64,
  /** Maximum number of concurrent connections to a sandbox's ports on each worker. */
  connections: 100,
  /** Maximum size of a WebSocket message to a port or a command. */
  messageBytes: 64 * 1024,
  /** Maximum size of a WebSocket text frame. Longer text frames are ignored. */
  textFrameBytes: 200,
  /** Minimum size of a secret value that is redacted in output. Shorter values would match by chance. */
  blankedBytes: 8,
  /** Maximum size of a secret's value. */
  secretBytes: 32 * 1024,
  /** Maximum total size of the names and values of an account's secrets. */
  secretsBytes: 64 * 1024,
  /** Maximum number of secrets per account. */
  secrets: 64,
  /** Maximum number of stored API keys per account. New keys replace revoked and expired keys. */
  apiKeys: 100,
  /** How long a replaced API key remains valid. */
  overlapSeconds: { default: 60 * 60, max: 7 * 24 * 60 * 60 },
  /** Maximum number of allowlist entries, and maximum length of an entry in characters, including spaces. */
  allowlist: { entries: 200, characters: 200 },
  /** Maximum total size of the names and values in a sandbox's metadata. */
  metadataBytes: 4 * 1024,
  /** Number of days after a sandbox's creation for which its commands are listed and its metadata is kept. */
  pastDays: 31,
  /** Number of days for which counts of refused commands are kept. */
  refusalDays: 31,
  /**
   * Maximum number of JSON-RPC messages in one request to /v1/mcp. A single `tools/list` response is 10 KB
   * long.
   */
  mcpMessages: 10,
  /** Length of a new password. */
  passwordCharacters: { min: 10, max: 1024 },
  /** Maximum length of an email address before normalization. */
  emailCharacters: 254,
  /** How long a create request waits for its sandbox before the API responds with 202. */
  createWaitMs: 30_000,
  /** How long exec and file requests wait for a sandbox that is still starting. */
  startingWaitMs: 10_000,
  /** Lifetime of a session token. */
  tokenSeconds: 15 * 60,
  /** How long an Idempotency-Key is stored. */
  idempotencyHours: 24,
} as const
