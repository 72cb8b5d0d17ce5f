/** Text of a session in the user's own pager. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, createWriteStream, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CliError } from './errors.ts'

/**
 * Shows text once all of it has arrived: a pager that waits for its user would otherwise hold up the service.
 * @param text free of control characters that steer a terminal, because some pagers pass them on
 * @param show gives the pager the terminal
 */
export async function showInPager(
  pager: string,
  text: AsyncIterable<string>,
  show: (use: () => Promise<void>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { output, input } = openPrivateFile()
  try {
    await pipeline(text, createWriteStream('', { fd: output }), { signal })
    await show(() => run(pager, input))
  } finally {
    closeSync(input)
  }
}

/** A file without a name, which ends with the last process that has it open. */
function openPrivateFile() {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-pager-'))
  try {
    const file = join(folder, 'text')
    return { output: openSync(file, 'wx', 0o600), input: openSync(file, 'r') }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function run(pager: string, input: number): Promise<void> {
  // `less` shows colors only when it is asked to; everything else of the text is plain.
  const env = { LESS: 'R', ...process.env }
  const child = spawn('/bin/sh', ['-c', pager], { stdio: [input, 'inherit', 'inherit'], env })
  const [code, signal] = await once(child, 'close')
  if (code !== 0)
    throw new CliError(
      'failed',
      `The pager \`${pager}\` ended with ${code ?? signal}. PAGER names another one.`,
    )
}
