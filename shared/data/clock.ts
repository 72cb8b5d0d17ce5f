/** PostgreSQL's clock, which this process counts on by itself. It is behind the real one rather than ahead. */
export interface DatabaseClock {
  /** Milliseconds since 1970, when PostgreSQL was asked. */
  ms: number
  /** When the answer came, in `performance.now()`. */
  readAt: number
}

/** @returns milliseconds since 1970 */
export const readOf = ({ ms, readAt }: DatabaseClock): number => ms + performance.now() - readAt
