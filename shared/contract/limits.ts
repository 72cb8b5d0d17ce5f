/** What the contract bounds, each figure in one place. Bytes, milliseconds or counts as named. */
export const limits = {
  /** The largest JSON body of a request: of a route that carries files or stdin. */
  bodyBytes: 10 * 1024 * 1024,
  /** The same of every route that does not name another; `bodyBytes` in its schemas does. */
  usualBodyBytes: 64 * 1024,
  /** Output kept of each stream of a command in a JSON answer: half of it head, half tail. */
  outputBytes: 1024 * 1024,
  /** Output kept of one command for those who read it later, and of all commands of a sandbox. */
  keptBytes: 8 * 1024 * 1024,
  keptBytesOfSandbox: 16 * 1024 * 1024,
  /** A command waits while a reader that is there has this much unread. */
  unreadBytes: 4 * 1024 * 1024,
  /** How long a foreground command outlives a client that left, unless the request says. */
  graceMs: { default: 2_000, most: 24 * 60 * 60 * 1000 },
  /** Content of one files/view answer. */
  viewBytes: 1024 * 1024,
  /** A file that files/edit changes. */
  editBytes: 10 * 1024 * 1024,
  /** An argv, an environment or one string of them; Linux refuses more with E2BIG. */
  argumentsBytes: 2 * 1024 * 1024 - 64 * 1024,
  argumentBytes: 128 * 1024 - 1,
  /** `timeout_ms` of an exec when the request names none. */
  execTimeoutMs: 60_000,
  /** What one answer of files/ls, glob and grep lists at most, and how many bytes of JSON that may be. */
  listed: { entries: 10_000, paths: 10_000, matches: 1_000, bytes: 4 * 1024 * 1024 },
  /** A line of files/grep is cut there. */
  grepLineBytes: 2_000,
  /** A secret's value; all of an account's together, with their names; how many those may be. */
  secretBytes: 32 * 1024,
  secretsBytes: 512 * 1024,
  secrets: 500,
  /** API keys of an account that are stored; those that were revoked or have expired make way for new ones. */
  apiKeys: 100,
  /** How long a key may go on after it was replaced, and how long it does unless the request says. */
  overlapSeconds: { default: 60 * 60, most: 7 * 24 * 60 * 60 },
  /** Entries of a command allowlist, and characters of one; of one as it is sent, with spaces that do not count. */
  allowlist: { entries: 200, characters: 200, sentCharacters: 1024 },
  /** How long commands are listed, and the metadata of a sandbox kept, in days since it was made. */
  pastDays: 31,
  /** How long refused commands are counted, in days. */
  refusalDays: 31,
  /** JSON-RPC messages in one request to /v1/mcp; one that lists the tools is answered with 20 KB. */
  mcpMessages: 10,
  passwordCharacters: { least: 10, most: 1024 },
  /** Of an address as it is sent. */
  emailCharacters: 254,
  page: { default: 20, most: 100 },
  /** How long a create waits for its sandbox before it answers 202. */
  createWaitMs: 30_000,
  /** How long exec and files wait for a sandbox that is still starting. */
  startingWaitMs: 10_000,
  /** Life of a dashboard session token. */
  tokenSeconds: 15 * 60,
  /** How long an Idempotency-Key is remembered. */
  idempotencyHours: 24,
} as const
