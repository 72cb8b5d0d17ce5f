/** What the contract bounds, each figure in one place. Bytes, milliseconds or counts as named. */
export const limits = {
  /** The largest JSON body of a request. */
  bodyBytes: 10 * 1024 * 1024,
  /** Output kept of each stream of a command in a JSON answer: half of it head, half tail. */
  outputBytes: 1024 * 1024,
  /** Content of one files/view answer. */
  viewBytes: 1024 * 1024,
  /** An argv, an environment or one string of them; Linux refuses more with E2BIG. */
  argumentsBytes: 2 * 1024 * 1024 - 64 * 1024,
  argumentBytes: 128 * 1024 - 1,
  /** `timeout_ms` of an exec when the request names none. */
  execTimeoutMs: 60_000,
  passwordCharacters: { least: 10, most: 1024 },
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
