import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { limits } from '../../shared/contract/limits.ts'
import type { Api } from './api.ts'
import { addStory, CliError } from './errors.ts'
import type { Output } from './output.ts'
import type { Settings } from './settings.ts'
import { onShutdown } from './shutdown.ts'
import { unifiedDiff } from './unified-diff.ts'

interface RemoteFile {
  api: Api
  id: string
  path: string
  settings: Settings
}

/**
 * Opens a remote file in the user's editor, saves the changes, and prints a diff.
 * @throws {CliError} `usage` if there is no terminal, or an error from {@link changeByHand}
 */
export async function editByHand({ output, ...editing }: RemoteFile & { output: Output }): Promise<void> {
  if (!process.stdin.isTTY || output.json) {
    throw new CliError('usage', 'An editor needs a terminal. Use --old and --new instead.')
  }
  const change = await changeByHand(editing)
  if (!change) return output.note('Nothing was changed.')
  const [before, after] = [change.before.toString(), change.after.toString()]
  output.result(undefined, await unifiedDiff(`${editing.path} before`, editing.path, before, after))
}

/**
 * Opens a remote file in the user's editor, and saves the changes.
 * @returns undefined if nothing was changed
 * @throws {CliError} if the editor fails, or if the remote file has changed in the meantime
 */
export async function changeByHand({ api, id, path, settings }: RemoteFile) {
  const before = await download(api, id, path)
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-edit-'))
  const file = join(folder, basename(path) || 'file')
  let keep = false
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    writeFileSync(file, before, { mode: 0o600 })
    const editor = spawn('/bin/sh', ['-c', `${settings.editor()} "$1"`, 'sh', file], { stdio: 'inherit' })
    const unregister = onShutdown(async () => remove())
    const [code, signal] = await once(editor, 'close').finally(unregister)
    if (code !== 0)
      throw new CliError(
        'failed',
        `The editor failed (${signal ?? `exit code ${code}`}). The file was not changed.`,
      )
    const after = readFileSync(file)
    if (after.equals(before)) return undefined
    try {
      await upload(api, id, path, before, after)
    } catch (error) {
      keep = true
      throw error instanceof CliError
        ? addStory(error, 'The file was not written.', `Your version is saved in ${file}.`)
        : error
    }
    return { before, after }
  } finally {
    if (!keep) remove()
  }
}

async function download(api: Api, id: string, path: string): Promise<Buffer> {
  const { response, fail } = await api.open('readRawFile', { params: { id }, query: { path } })
  if (Number(response.headers['content-length']) > limits.editBytes) {
    response.destroy()
    throw new CliError(
      'failed',
      `${path} is too large to edit. Use \`sandlot files get\` and \`sandlot files put\`.`,
    )
  }
  return await buffer(response).catch((error) => Promise.reject(fail(error)))
}

async function upload(api: Api, id: string, path: string, before: Buffer, after: Buffer): Promise<void> {
  const sum = createHash('sha256').update(before).digest('hex')
  await api.call('writeRawFile', {
    params: { id },
    query: { path },
    headers: { 'if-match': `"${sum}"` },
    bytes: [after],
  })
}
