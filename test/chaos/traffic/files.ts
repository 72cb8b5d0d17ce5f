/** Checks that files are written completely or not at all. */
import { createHash } from 'node:crypto'
import { between } from '../random.ts'
import { attempt } from '../recorder.ts'
import { anyApi, type Lane, newToken, send } from './lane.ts'

/** Writes and reads a file. A write without a response must also be complete or have no effect. */
export async function files(lane: Lane): Promise<void> {
  const { account, params, recorder, random } = lane
  const path = `file-${newToken()}`
  const content = `${path}\n`.repeat(between(random, 1, 4_000))
  const isRaw = random() < 0.5
  const written = isRaw
    ? await send(lane, 'writeRawFile', { params, query: { path }, bytes: Buffer.from(content) })
    : await send(lane, 'createFile', { params, body: { path, content } })
  const read = await attempt(recorder, 'readRawFile', async (signal) => {
    const answer = await account.open('readRawFile', { params, query: { path }, api: anyApi(lane), signal })
    return answer.text()
  })
  if ('ok' in read && read.ok !== content) {
    const evidence = {
      path,
      sha256: createHash('sha256').update(content).digest('hex'),
      length: content.length,
      got: read.ok.length,
      isRaw,
      written: 'ok' in written ? written.ok.body : written.failed,
    }
    recorder.wrong('a file differs from the content that was written', evidence, [lane.sandbox.id])
  }
  if ('ok' in written && 'failed' in read && read.refusal?.code === 'file_not_found') {
    recorder.wrong('a file that was written does not exist', { path }, [lane.sandbox.id])
  }
  if ('ok' in written && 'ok' in read) await edit(lane, path)
}

async function edit(lane: Lane, path: string): Promise<void> {
  const { params, recorder } = lane
  const replacement = `<${newToken()}>`
  const body = { path, old: `${path}\n`, new: `${replacement}\n`, replace_all: true }
  const edited = await send(lane, 'editFile', { params, body })
  const viewed = await send(lane, 'viewFile', { params, query: { path } })
  if ('failed' in viewed) return
  const { content } = viewed.ok.body
  const kinds = new Set(content.split('\n').filter((line) => line !== ''))
  const isNew = kinds.has(replacement)
  if (kinds.size !== 1 || ('ok' in edited && !isNew)) {
    recorder.wrong(
      'an edit was applied partially or not at all',
      { path, kinds: [...kinds], edited: 'ok' in edited },
      [lane.sandbox.id],
    )
  }
}

export async function search(lane: Lane): Promise<void> {
  const { params } = lane
  await send(lane, 'globFiles', { params, query: { pattern: '*' } })
  await send(lane, 'grepFiles', { params, query: { pattern: 'nothing' } })
  await send(lane, 'listFiles', { params, query: { path: '.' } })
}
