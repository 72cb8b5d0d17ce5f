import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import type { CallName } from '../../shared/rpc/calls.ts'
import type { CallHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'

/** Four file operations of a sandbox run at once: each holds megabytes, and has a process there. More wait. */
const inSandbox = limitByKey(4)

export const limitPerSandbox =
  <N extends CallName>(call: CallHandler<N, SandboxContext>): CallHandler<N, SandboxContext> =>
  (args, worker, wire) =>
    inSandbox(args.sandboxId, async () => {
      // Does no work for a caller that hung up while it waited.
      wire.signal.throwIfAborted()
      return await call(args, worker, wire)
    })
