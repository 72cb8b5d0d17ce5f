import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import type { CallName } from '../../shared/rpc/calls.ts'
import type { CallHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'

/**
 * Runs at most four file operations at a time in each sandbox, because each one needs a process and several
 * megabytes of memory there.
 */
const inSandbox = limitByKey(4)

export const limitPerSandbox =
  <N extends CallName>(call: CallHandler<N, SandboxContext>): CallHandler<N, SandboxContext> =>
  (args, worker, wire) =>
    inSandbox(args.sandboxId, async () => {
      wire.signal.throwIfAborted()
      return await call(args, worker, wire)
    })
