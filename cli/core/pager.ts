import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, createWriteStream, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CliError } from './errors.ts'

/**
 * Shows text in a pager. First saves all text to a file, because a pager reads only as the user scrolls, and
 * a pipe would therefore stall the transfer from the service.
 * @param text without control characters, which some pagers print unchanged
 * @param show suspends the picker while it runs the function passed to it
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

/** Opens an unlinked temporary file, which the kernel deletes when the last process closes it. */
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
  // `less` shows colors only with -R.
  const env = { LESS: 'R', ...process.env }
  const child = spawn('/bin/sh', ['-c', pager], { stdio: [input, 'inherit', 'inherit'], env })
  const [code, signal] = await once(child, 'close')
  if (code === 0) return
  const message = `The pager \`${pager}\` exited with ${code ?? signal}. To use another pager, set PAGER.`
  throw new CliError('failed', message)
}
