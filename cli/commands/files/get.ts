/** `sandlot files get PATH [LOCAL]`: a file of any size, to this machine. */
import { createHash } from 'node:crypto'
import { createWriteStream, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Api } from '../../core/api.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { ConnectionError } from '../../core/http.ts'
import { type Output, printable } from '../../core/output.ts'
import { noProgress, showTransfer } from '../../core/progress.ts'

/** How often a broken transfer starts again. */
const tries = 3

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .argument('[local]', 'a file or folder of this machine, - for stdout; by default the same name here'),
  examples: [
    'sandlot files get build/report.pdf',
    'sandlot files get data.tar backups/',
    'sandlot files get data.tar - | tar t',
  ],
  fields: ['path', 'local', 'size', 'sha256'],
  handle: async ({ args, session, api, output }) => {
    const [path = '', given = '.'] = args
    const id = await session()
    const source = { api, id, path, output }
    if (given === '-') return await show(source)
    const local = isFolder(given) ? join(given, basename(path)) : given
    const facts = await save(source, local)
    output.result({ path, local, ...facts }, `${printable(local)}\n`)
    output.aside(`${facts.size} bytes.`)
  },
})

interface Source {
  api: Api
  id: string
  path: string
  output: Output
}

const toStdout = () => process.stdout

/** A reader that closes early (`| head`) is not a failure. */
async function show(source: Source): Promise<void> {
  try {
    await receive(source, toStdout)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** Whole, or not at all. */
async function save(source: Source, local: string) {
  const part = `${local}.${process.pid}.part`
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        const facts = await receive(source, () => createWriteStream(part))
        renameSync(part, local)
        return facts
      } catch (error) {
        if (!(error instanceof ConnectionError) || attempt === tries) throw error
      }
    }
  } catch (error) {
    rmSync(part, { force: true })
    if (error instanceof CliError) throw error
    throw new CliError('failed', `${local} cannot be written: ${(error as Error).message}`)
  }
}

/** @throws {ConnectionError} when the transfer is incomplete */
async function receive({ api, id, path, output }: Source, open: () => Writable) {
  const { response, fail } = await api.open('readRawFile', { params: { id }, query: { path } })
  const hash = createHash('sha256')
  const whole = Number(response.headers['content-length'] ?? 0)
  // Two writers on one terminal would write over each other.
  using progress = open === toStdout && process.stdout.isTTY ? noProgress : output.progress(path)
  const started = performance.now()
  let size = 0
  let broken: unknown
  async function* counted(source: Readable) {
    try {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        hash.update(chunk)
        size += chunk.length
        progress.say(`${path}  ${showTransfer(size, whole, (performance.now() - started) / 1000)}`)
        yield chunk
      }
    } catch (error) {
      broken = error
      throw error
    }
  }
  const out = open()
  try {
    await pipeline(response, counted, out, { end: out !== process.stdout })
  } catch (error) {
    throw broken === undefined ? error : fail(broken)
  }
  return { size, sha256: hash.digest('hex') }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
