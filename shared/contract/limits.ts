/** The limits of the contract. Names give the unit: bytes, characters, milliseconds; otherwise it is a count. */
export const limits = {
  /** JSON body of a route that carries files, stdin or arguments. */
  bodyBytes: 1024 * 1024,
  /** JSON body of every other route, unless it declares `bodyBytes`. */
  usualBodyBytes: 64 * 1024,
  /** Each output stream of a command in a JSON reply: half of it head, half tail. */
  outputBytes: 1024 * 1024,
  /** Output retained for later readers: of one command, and of all commands of a sandbox. */
  keptBytes: 8 * 1024 * 1024,
  keptBytesOfSandbox: 16 * 1024 * 1024,
  /** A command blocks while a connected reader has this many unread bytes. */
  unreadBytes: 4 * 1024 * 1024,
  /** How long a foreground command keeps running after its client has disconnected. */
  graceMs: { default: 2_000, max: 24 * 60 * 60 * 1000 },
  /** Content of one files/view reply. */
  viewBytes: 1024 * 1024,
  /** Size of a file for files/edit, before and after the edit. */
  editBytes: 16 * 1024 * 1024,
  /**
   * The argv and environment of one request together, and one string in them. With the environment of the sandbox and
   * the secrets, they fit into the 2 MiB that Linux accepts.
   */
  argumentsBytes: 1024 * 1024 - 64 * 1024,
  argumentBytes: 128 * 1024 - 1,
  /** `timeout_ms` of an exec when the request names none. */
  execTimeoutMs: 60_000,
  /** Items in one reply of files/ls, glob and grep, and the bytes of its JSON. */
  listed: { entries: 10_000, paths: 10_000, matches: 1_000, bytes: 4 * 1024 * 1024 },
  /** A glob, and all alternatives of its braces together. The slowest path then takes less than 0.1 s. */
  globCharacters: 1024,
  /** Length to which files/grep truncates a line. */
  grepLineBytes: 2_000,
  /** Concurrent streamed replies of one account on one worker, and as many concurrent uploads. */
  streams: 64,
  /** Concurrent connections to the ports of one sandbox on one worker. */
  connections: 100,
  /** A WebSocket message to a port or a command; a text frame, of which longer ones are ignored. */
  messageBytes: 64 * 1024,
  textFrameBytes: 200,
  /** Shorter values of secrets are not redacted in output, because they would match by chance. */
  blankedBytes: 8,
  /** The value of a secret; all values and names of an account together; secrets of an account. */
  secretBytes: 32 * 1024,
  secretsBytes: 64 * 1024,
  secrets: 64,
  /** Stored API keys of an account. New keys replace revoked and expired ones. */
  apiKeys: 100,
  /** How long a replaced key remains valid. */
  overlapSeconds: { default: 60 * 60, max: 7 * 24 * 60 * 60 },
  /** Entries of a command allowlist; characters of an entry, including spaces. */
  allowlist: { entries: 200, characters: 200 },
  /** Names and values of a sandbox's metadata together. */
  metadataBytes: 4 * 1024,
  /** Days after creation for which commands are listed and the metadata of a sandbox is kept. */
  pastDays: 31,
  /** Days for which counts of refused commands are kept. */
  refusalDays: 31,
  /** JSON-RPC messages in one request to /v1/mcp. The reply to `tools/list` has 10 KB. */
  mcpMessages: 10,
  passwordCharacters: { min: 10, max: 1024 },
  /** Characters of an email address before normalization. */
  emailCharacters: 254,
  /** How long a create waits for its sandbox before it answers 202. */
  createWaitMs: 30_000,
  /** How long exec and files wait for a sandbox that is still starting. */
  startingWaitMs: 10_000,
  tokenSeconds: 15 * 60,
  /** How long an Idempotency-Key is stored. */
  idempotencyHours: 24,
} as const
