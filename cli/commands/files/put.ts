/** `sandlot files put LOCAL PATH`: a file of any size, from this machine. */
import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { printable } from '../../core/output.ts'
import { type Progress, showTransfer } from '../../core/progress.ts'
import { createdFileFields } from '../../core/shapes.ts'

/** No transfer takes longer than its session lives. */
const timeoutMs = 24 * 60 * 60 * 1000

export const define = defineCommand<{ mode?: string; overwrite: boolean; ifMatch?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<local>', 'a file of this machine; - is stdin')
      .argument(
        '<path>',
        'relative to /workspace, or absolute; with a / at the end it is the folder to put it in',
      )
      .option('--mode <mode>', 'permissions in octal, such as 755')
      .option('--no-overwrite', 'refuse if the file exists')
      .option('--if-match <sha256>', 'refuse unless the file has this sha256'),
  examples: [
    'sandlot files put data.tar data.tar',
    'sandlot files put run.sh bin/ --mode 755',
    'tar c src | sandlot files put - src.tar',
  ],
  fields: createdFileFields,
  handle: async ({ args, options, session, api, output }) => {
    const [local = '', target = ''] = args
    const bytes = local === '-' ? onlyOnce(process.stdin) : fileBytes(local)
    const path = target.endsWith('/') && local !== '-' ? `${target}${basename(local)}` : target
    const id = await session()
    using progress = output.progress(path)
    const created = await api.call('writeRawFile', {
      params: { id },
      query: {
        path,
        mode: options.mode,
        overwrite: options.overwrite ? undefined : 'false',
      },
      ...(options.ifMatch !== undefined && { headers: { 'if-match': `"${options.ifMatch}"` } }),
      bytes: counting(bytes, path, sizeOf(local), progress),
      timeoutMs,
    })
    output.result(created, `${printable(created.path)}\n`)
    output.aside(`${created.size} bytes written.`)
  },
})

/** Undefined for a pipe or a device, whose size is not known in advance. */
function sizeOf(local: string): number | undefined {
  const stat = local === '-' ? undefined : statSync(local, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.size : undefined
}

/** Passes the bytes on, and reports progress. */
const counting = (
  bytes: AsyncIterable<Uint8Array>,
  path: string,
  whole: number | undefined,
  progress: Progress,
): AsyncIterable<Uint8Array> => ({
  async *[Symbol.asyncIterator]() {
    const started = performance.now()
    let size = 0
    for await (const chunk of bytes) {
      yield chunk
      size += chunk.length
      progress.say(`${path}  ${showTransfer(size, whole, (performance.now() - started) / 1000)}`)
    }
  },
})

/** Read anew for each try. */
function fileBytes(path: string): AsyncIterable<Uint8Array> {
  const unreadable = (error: unknown) =>
    new CliError('failed', `${path} cannot be read: ${(error as Error).message}`)
  try {
    if (statSync(path).isDirectory()) throw new Error('it is a directory')
  } catch (error) {
    throw unreadable(error)
  }
  return {
    async *[Symbol.asyncIterator]() {
      try {
        yield* createReadStream(path, { highWaterMark: 256 * 1024 })
      } catch (error) {
        throw unreadable(error)
      }
    },
  }
}

/** stdin cannot be read twice: a second try would send only the rest. */
function onlyOnce(input: NodeJS.ReadStream): AsyncIterable<Uint8Array> {
  let begun = false
  return {
    async *[Symbol.asyncIterator]() {
      if (begun) throw new CliError('network', 'The connection broke, and stdin cannot be read twice.')
      begun = true
      yield* input
    },
  }
}
