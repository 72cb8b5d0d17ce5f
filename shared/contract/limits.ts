/** The limits of the public API. A limit without a unit in its name is a count. */
export const limits = {
  /** Maximum size of a JSON body with files, stdin or arguments. */
  bodyBytes: 1024 * 1024,
  /** Maximum size of any other JSON body. */
  usualBodyBytes: 64 * 1024,
  /** Maximum size of stdout or stderr in a JSON response. The middle of longer output is omitted. */
  outputBytes: 1024 * 1024,
  /** Maximum size of a command's retained output. Older output is dropped. */
  keptBytes: 8 * 1024 * 1024,
  /** Maximum size of the retained output of all commands of a sandbox. Older output is dropped. */
  keptBytesOfSandbox: 16 * 1024 * 1024,
  /**
   * Maximum size of the output that a connected reader has not yet read. At this limit, the command blocks.
   */
  unreadBytes: 4 * 1024 * 1024,
  /** How long a foreground command keeps running after its client has disconnected. */
  graceMs: { default: 2_000, max: 24 * 60 * 60 * 1000 },
  /** Maximum size of the content in a files/view response. Longer content is truncated. */
  viewBytes: 1024 * 1024,
  /** Maximum size of a file for files/edit, both before and after the edit. */
  editBytes: 16 * 1024 * 1024,
  /**
   * Maximum total size of a command's arguments and environment. Linux accepts 2 MiB, including the sandbox's
   * environment and secrets.
   */
  argumentsBytes: 1024 * 1024 - 64 * 1024,
  /** Maximum size of an argument or environment variable. Linux does not accept longer strings. */
  argumentBytes: 128 * 1024 - 1,
  /** Timeout for a command if the request contains no `timeout_ms`. */
  execTimeoutMs: 60_000,
  /** Limits for files/ls, glob and grep responses. `bytes` is the size of the JSON. */
  listed: { depth: 32, entries: 10_000, paths: 10_000, matches: 1_000, bytes: 4 * 1024 * 1024 },
  /**
   * Maximum length of a glob, and of all its brace alternatives together. Within this limit, even the slowest
   * match of a path takes less than 0.1 s.
   */
  globCharacters: 1024,
  /**
   * Maximum number of watches per sandbox on each worker. The limits of `listed` also apply to each watch,
   * where `bytes` is the size of the entries' names and timestamps.
   */
  watches: 8,
  /** Maximum length of a line in a files/grep response. Longer lines are truncated. */
  grepLineBytes: 2_000,
  /** Maximum number of concurrent streamed responses per account and worker. Uploads have the same limit. */
  streams: 64,
  /** Maximum number of connections to a sandbox's ports on each worker. */
  connections: 100,
  /** Maximum size of a WebSocket message to a port or a command. */
  messageBytes: 64 * 1024,
  /** Maximum size of a WebSocket text frame. Longer text frames are ignored. */
  textFrameBytes: 200,
  /** Minimum size of a secret that is redacted in output. Shorter values could match by chance. */
  blankedBytes: 8,
  secretBytes: 32 * 1024,
  /** Maximum total size of the names and values of an account's secrets. */
  secretsBytes: 64 * 1024,
  secrets: 64,
  /**
   * Maximum number of API keys per account. At the limit, revoked and expired keys are deleted to make room
   * for a new key.
   */
  apiKeys: 100,
  /** How long a replaced API key remains valid. */
  overlapSeconds: { default: 60 * 60, max: 7 * 24 * 60 * 60 },
  /** Maximum number of allowlist entries, and maximum length of each entry, including spaces. */
  allowlist: { entries: 200, characters: 200 },
  /** Maximum total size of the names and values in a sandbox's metadata. */
  metadataBytes: 4 * 1024,
  /** Days from creation until ended commands and the metadata of destroyed sandboxes are deleted. */
  pastDays: 31,
  /** How long counts of refused commands are kept. */
  refusalDays: 31,
  /** Maximum number of messages in a request to /v1/mcp. Each can get a `tools/list` response of 10 KB. */
  mcpMessages: 10,
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
