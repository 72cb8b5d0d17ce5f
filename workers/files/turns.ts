import type { CallName } from '../../shared/rpc/calls.ts'
import type { CallHandler } from '../sandbox/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'

/** Lets only so many pieces of work on one thing run at a time, in the order in which they came. */
export function makeTurns(atOnce = 1) {
  const lines = new Map<string, { working: number; waiting: (() => void)[] }>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const line = lines.get(key) ?? { working: 0, waiting: [] }
    lines.set(key, line)
    if (line.working < atOnce) line.working++
    else await new Promise<void>((go) => line.waiting.push(go))
    try {
      return await work()
    } finally {
      // Hands the free turn to the next in line.
      const next = line.waiting.shift()
      if (next) next()
      else if (--line.working === 0) lines.delete(key)
    }
  }
}

/** Four file operations of a sandbox run at once: each holds megabytes, and has a process there. More wait. */
const inSandbox = makeTurns(4)

export const oneOfFew =
  <N extends CallName>(call: CallHandler<N, SandboxContext>): CallHandler<N, SandboxContext> =>
  (args, worker, wire) =>
    inSandbox(args.sandboxId, async () => {
      // Does no work for a caller that hung up while it waited.
      wire.signal.throwIfAborted()
      return await call(args, worker, wire)
    })
