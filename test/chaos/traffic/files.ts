/** Files: what was written is there, whole, and what was not is not there in part. */
import { createHash } from 'node:crypto'
import { attempt } from '../ledger.ts'
import { between } from '../random.ts'
import { anyApi, type Lane, newToken } from './lane.ts'

/** Writes a file, by either way, and reads it again. A write whose answer was lost may have been done, but not by half. */
export async function files(lane: Lane): Promise<void> {
  const { account, params, ledger, random } = lane
  const path = `file-${newToken()}`
  const content = `${path}\n`.repeat(between(random, 1, 4_000))
  const isRaw = random() < 0.5
  const written = await attempt(ledger, isRaw ? 'writeRawFile' : 'createFile', (signal) =>
    isRaw
      ? account.call('writeRawFile', {
          params,
          query: { path },
          bytes: Buffer.from(content),
          api: anyApi(lane),
          signal,
        })
      : account.call('createFile', { params, body: { path, content }, api: anyApi(lane), signal }),
  )
  const read = await attempt(ledger, 'readRawFile', async (signal) => {
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
    ledger.wrong('a file is not what was written', evidence, [lane.sandbox.id])
  }
  if ('ok' in written && 'failed' in read && read.refusal?.code === 'file_not_found') {
    ledger.wrong('a file that was written is not there', { path }, [lane.sandbox.id])
  }
  if ('ok' in written && 'ok' in read) await edit(lane, path)
}

/** Replaces one thing once; a repetition would not find it. */
async function edit(lane: Lane, path: string): Promise<void> {
  const { account, params, ledger } = lane
  const mark = `<${newToken()}>`
  const body = { path, old: `${path}\n`, new: `${mark}\n`, replace_all: true }
  const edited = await attempt(ledger, 'editFile', (signal) =>
    account.call('editFile', { params, body, api: anyApi(lane), signal }),
  )
  const viewed = await attempt(ledger, 'viewFile', (signal) =>
    account.call('viewFile', { params, query: { path }, api: anyApi(lane), signal }),
  )
  if ('failed' in viewed) return
  const { content } = viewed.ok.body
  const kinds = new Set(content.split('\n').filter((line) => line !== ''))
  const isNew = kinds.has(mark)
  if (kinds.size !== 1 || ('ok' in edited && !isNew)) {
    ledger.wrong(
      'an edit was done by half, or not at all',
      { path, kinds: [...kinds], edited: 'ok' in edited },
      [lane.sandbox.id],
    )
  }
}

export async function search(lane: Lane): Promise<void> {
  const { account, params, ledger } = lane
  await attempt(ledger, 'globFiles', (signal) =>
    account.call('globFiles', { params, query: { pattern: '*' }, api: anyApi(lane), signal }),
  )
  await attempt(ledger, 'grepFiles', (signal) =>
    account.call('grepFiles', { params, query: { pattern: 'nothing' }, api: anyApi(lane), signal }),
  )
  await attempt(ledger, 'listFiles', (signal) =>
    account.call('listFiles', { params, query: { path: '.' }, api: anyApi(lane), signal }),
  )
}
