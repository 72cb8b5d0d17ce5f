/** The bounds of the contract, each figure in one place. Bytes, milliseconds or counts, as the names say. */
export const limits = {
  /** The largest JSON body, of a route that carries files, stdin or arguments. */
  bodyBytes: 1024 * 1024,
  /** The largest JSON body of every other route, unless its `bodyBytes` names another. */
  usualBodyBytes: 64 * 1024,
  /** Kept output of each stream of a command in a JSON answer: half of it head, half tail. */
  outputBytes: 1024 * 1024,
  /** Kept output of one command for later readers, and of all commands of a sandbox. */
  keptBytes: 8 * 1024 * 1024,
  keptBytesOfSandbox: 16 * 1024 * 1024,
  /** A command waits while a present reader has this much unread. */
  unreadBytes: 4 * 1024 * 1024,
  /** How long a foreground command outlives a client that left, unless the request says. */
  graceMs: { default: 2_000, most: 24 * 60 * 60 * 1000 },
  /** The most content of one files/view answer. */
  viewBytes: 1024 * 1024,
  /** The largest file that files/edit changes, before and after. */
  editBytes: 16 * 1024 * 1024,
  /**
   * The most of an argv and an environment in one request, and of one string of them. With the environment of the sandbox
   * and the secrets, an argv then fits into the 2 MiB that Linux accepts.
   */
  argumentsBytes: 1024 * 1024 - 64 * 1024,
  argumentBytes: 128 * 1024 - 1,
  /** `timeout_ms` of an exec when the request names none. */
  execTimeoutMs: 60_000,
  /** What one answer of files/ls, glob or grep lists at most, and its bytes of JSON. */
  listed: { entries: 10_000, paths: 10_000, matches: 1_000, bytes: 4 * 1024 * 1024 },
  /** Characters of a glob, and of all alternatives of its braces together. The worst path then takes less than 0.1 s. */
  globCharacters: 1024,
  /** Where a line of files/grep is cut. */
  grepLineBytes: 2_000,
  /** Streamed answers of one account that one worker sends at once, and as many uploads that it receives. */
  streams: 64,
  /** Connections to ports of one sandbox that one worker carries at once. */
  connections: 100,
  /** A WebSocket message to a port or a command; a text frame, beyond which it is ignored. */
  messageBytes: 64 * 1024,
  textFrameBytes: 200,
  /** A secret's value of fewer bytes is not blanked out of output: it would be found by chance. */
  blankedBytes: 8,
  /** A secret's value; all values of an account together, with their names; how many secrets it may have. */
  secretBytes: 32 * 1024,
  secretsBytes: 64 * 1024,
  secrets: 64,
  /** Stored API keys of an account; revoked and expired ones make room for new ones. */
  apiKeys: 100,
  /** Seconds that a replaced key goes on: by default, and at most. */
  overlapSeconds: { default: 60 * 60, most: 7 * 24 * 60 * 60 },
  /** Entries of a command allowlist; characters of one, spaces too. */
  allowlist: { entries: 200, characters: 200 },
  /** Names and values of a sandbox's metadata together. */
  metadataBytes: 4 * 1024,
  /** Days that commands are listed, and a sandbox's metadata is kept, since it was made. */
  pastDays: 31,
  /** Days that refused commands are counted. */
  refusalDays: 31,
  /** JSON-RPC messages in one request to /v1/mcp; the answer of one that lists the tools has 10 KB. */
  mcpMessages: 10,
  passwordCharacters: { least: 10, most: 1024 },
  /** Characters of an e-mail address as it is sent. */
  emailCharacters: 254,
  /** How long a create waits for its sandbox before it answers 202. */
  createWaitMs: 30_000,
  /** How long exec and files wait for a sandbox that is still starting. */
  startingWaitMs: 10_000,
  tokenSeconds: 15 * 60,
  /** How long an Idempotency-Key is remembered. */
  idempotencyHours: 24,
} as const
