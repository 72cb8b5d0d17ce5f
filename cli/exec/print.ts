/** A command's output on our own stdout and stderr, and what is said beside it. */
import type { CliError } from '../core/errors.ts'

/** Resolves when more can be taken: a reader that is slow slows the command. */
export const print = (stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    // Called after a failed write too: we must not wait for a reader that is gone.
    if (process[stream].write(bytes, () => resolve())) resolve()
  })

export interface ByteCounts {
  stdout_bytes: number
  stderr_bytes: number
}

/** Reports output that the service no longer had, at its place in the output. */
export function sayMissing({ stdout_bytes, stderr_bytes }: ByteCounts, note: (text: string) => void): void {
  const parts = [
    ...(stdout_bytes > 0 ? [`${stdout_bytes} bytes of stdout`] : []),
    ...(stderr_bytes > 0 ? [`${stderr_bytes} bytes of stderr`] : []),
  ]
  if (parts.length > 0) note(`sandlot: ${parts.join(' and ')} are no longer kept, and are missing here.`)
}

export const sayAway = (note: (text: string) => void) => ({
  onAway: ({ message }: CliError) => note(`sandlot: ${message} Connecting again; Ctrl-C leaves.`),
  onBack: () => note('sandlot: connected again.'),
})
