import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import type { CallName } from '../../shared/rpc/calls.ts'
import type { CallHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'

/**
 * Limits each sandbox to four concurrent file operations. Each operation takes a process and several
 * megabytes of memory.
 */
const inSandbox = limitByKey(4)

export const limitPerSandbox =
  <N extends CallName>(call: CallHandler<N, SandboxContext>): CallHandler<N, SandboxContext> =>
  (args, worker, wire) =>
    inSandbox(args.sandboxId, async () => {
      wire.signal.throwIfAborted()
      return await call(args, worker, wire)
    })
