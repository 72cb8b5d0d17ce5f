import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import type { CallName } from '../../shared/rpc/calls.ts'
import type { CallHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'

/** Each file operation takes a process and several megabytes of memory in its sandbox. */
const inSandbox = limitByKey(4)

export const limitPerSandbox =
  <N extends CallName>(call: CallHandler<N, SandboxContext>): CallHandler<N, SandboxContext> =>
  (args, worker, wire) =>
    inSandbox(args.sandboxId, async () => {
      wire.signal.throwIfAborted()
      return await call(args, worker, wire)
    })
