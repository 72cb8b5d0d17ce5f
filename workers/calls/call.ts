import type { CallName, Calls } from '../../shared/calls.ts'
import type { WorkerContext } from '../context.ts'

/**
 * Answers one call of the API.
 * @param signal aborts when the API has hung up
 * @throws {Problem} what the client is to see
 */
export type Call<N extends CallName> = (
  args: Calls[N]['args'],
  worker: WorkerContext,
  signal: AbortSignal,
) => Promise<Calls[N]['result']>
