import { type ColorChoice, wantsColor } from '../core/drawing.ts'
import { type CliError, exitCodes } from '../core/errors.ts'
import { OutputCleaner } from '../core/printable.ts'

/**
 * Writes to stdout or stderr. Resolves when more can be written, so that a slow reader slows down the
 * command.
 */
export const print = (stream: 'stdout' | 'stderr', bytes: Buffer | string): Promise<void> =>
  new Promise((resolve) => {
    // Also called after a failed write, so that a closed reader does not block the client.
    if (process[stream].write(bytes, () => resolve())) resolve()
  })

/** Makes the client exit successfully when the reader of its stdout closes the pipe, as `head` does. */
export function exitOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.done)
  })
}

/**
 * Creates a printer for a command's output. On a terminal, it removes control sequences unless `raw` is true;
 * pipes and files receive every byte.
 */
export function createReplay({ raw = false, color }: { raw?: boolean; color?: ColorChoice }) {
  const cleanerFor = (stream: NodeJS.WriteStream) =>
    stream.isTTY && !raw ? new OutputCleaner({ styles: wantsColor(stream, color) }) : undefined
  const cleaners = { stdout: cleanerFor(process.stdout), stderr: cleanerFor(process.stderr) }
  return {
    print: (stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void> =>
      print(stream, cleaners[stream]?.clean(bytes) ?? bytes),
    /**
     * Prints text held back because it might begin an escape sequence. Call before a gap and at the end of
     * the output.
     */
    async flush(): Promise<void> {
      for (const stream of ['stdout', 'stderr'] as const) {
        const rest = cleaners[stream]?.flush()
        if (rest) await print(stream, rest)
      }
    },
  }
}

export interface ByteCounts {
  stdout_bytes: number
  stderr_bytes: number
}

export function noteMissing({ stdout_bytes, stderr_bytes }: ByteCounts, note: (text: string) => void): void {
  const parts = [
    ...(stdout_bytes > 0 ? [`${stdout_bytes} bytes of stdout`] : []),
    ...(stderr_bytes > 0 ? [`${stderr_bytes} bytes of stderr`] : []),
  ]
  if (parts.length > 0)
    note(`sandlot: ${parts.join(' and ')} are missing here, because the service no longer keeps them.`)
}

export const reconnectNotes = (note: (text: string) => void) => ({
  onDisconnect: ({ message }: CliError) => note(`sandlot: ${message} Reconnecting; press Ctrl-C to exit.`),
  onReconnect: () => note('sandlot: reconnected.'),
})
