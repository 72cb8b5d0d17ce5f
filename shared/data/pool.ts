/** The part of node-postgres that this project uses. */

export type Row = Record<string, unknown>

export type Send = (query: {
  name?: string
  text: string
  values: unknown[]
  query_timeout?: number
}) => Promise<{ rows: Row[] }>

export interface Pool {
  query: Send
  connect(): Promise<PoolClient>
  end(): Promise<void>
}

export interface PoolClient {
  query: Send & ((statement: 'begin' | 'commit' | 'rollback') => Promise<unknown>)
  on(event: 'error', listener: () => void): void
  release(destroy: boolean): void
}

/**
 * Returns whether a connection remains usable after an error. It does if PostgreSQL reported the error,
 * except for 25006 (read-only transaction), because a connection to a demoted primary remains read-only.
 */
export const leavesUsable = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && (error as { code?: string }).code !== '25006'
