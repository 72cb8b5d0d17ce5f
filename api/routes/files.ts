import type { IncomingMessage } from 'node:http'
import { readTags } from '../../shared/contract/conditions.ts'
import { fileChanges } from '../../shared/contract/file-changes.ts'
import { files as contract } from '../../shared/contract/files.ts'
import { translateGrepPattern } from '../../shared/contract/grep-pattern.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { watchInterrupted } from '../../shared/contract/watch-events.ts'
import type { CallName, Calls, InSandbox, StreamCallName, Streams } from '../../shared/rpc/calls.ts'
import type { App } from '../app.ts'
import { invalid } from '../errors/invalid.ts'
import { relayEvents } from '../exec/events.ts'
import { type Call, route, StreamReply } from '../http/route.ts'
import { awaitRunning } from '../sandboxes/load-sandbox.ts'
import { reportLost } from '../worker-client/client.ts'

const timeoutMs = 60_000

const notRead = 'The worker was lost before it responded. Try again.'
const notWritten =
  'The worker was lost while it was writing the file. The file is either unchanged or completely written. Read the file to check.'
const notChanged =
  'The worker was lost, and the change may have taken effect. Check the path before you try again.'

export const viewFile = route(contract.viewFile, (asked, app) => {
  const { start_line: startLine, end_line: endLine, ...file } = asked.query
  return call(app, 'viewFile', asked, { ...file, startLine, endLine }, notRead)
})

export const createFile = route(contract.createFile, (asked, app) =>
  call(app, 'createFile', asked, asked.body, notWritten),
)

export const editFile = route(contract.editFile, (asked, app) =>
  call(app, 'editFile', asked, asked.body, notWritten),
)

export const listFiles = route(contract.listFiles, (asked, app) =>
  call(app, 'listFiles', asked, asked.query, notRead),
)

export const watchFiles = route(contract.watchFiles, async (asked, app) => {
  const { sandbox, signal } = await enter(app, asked)
  const options = { signal, timeoutMs }
  const answer = await app.workers
    .stream('watchFiles', { ...asked.query, ...sandbox }, options)
    .catch(reportLost(notRead))
  const events = relayEvents(answer.body, {
    signal,
    finalEvent: 'end',
    finalEventsWithoutWorker: async (lastId) =>
      formatEvent(String(Number(lastId ?? 0) + 1), 'end', watchInterrupted),
  })
  return new StreamReply({ ...answer, body: events })
})

export const statFile = route(contract.statFile, (asked, app) =>
  call(app, 'statFile', asked, asked.query, notRead),
)

export const globFiles = route(contract.globFiles, (asked, app) =>
  call(app, 'globFiles', asked, asked.query, notRead),
)

export const grepFiles = route(contract.grepFiles, (asked, app) => {
  const { ignore_case, fixed, pattern: given, ...query } = asked.query
  const flags = { ignoreCase: ignore_case === 'true', fixed: fixed === 'true' }
  const read = flags.fixed ? { posix: given } : translateGrepPattern(given)
  if ('refused' in read) throw invalid({ path: 'pattern', message: read.refused })
  return call(app, 'grepFiles', asked, { ...query, ...flags, pattern: read.posix }, notRead)
})

export const readRawFile = route(contract.readRawFile, (asked, app) => {
  const { start_line: startLine, end_line: endLine, reveal = 'true', ...file } = asked.query
  if (startLine !== undefined || endLine !== undefined || reveal === 'false')
    return stream(app, 'readShown', asked, { ...file, startLine, endLine, reveal }, { lost: notRead })
  return stream(app, 'readRaw', asked, { ...file, ...conditionsOf(asked) }, { lost: notRead })
})

function conditionsOf({ request, headers }: Pick<Call<typeof contract.readRawFile>, 'request' | 'headers'>) {
  const { range, 'if-range': ifRange, 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  const isHead = request.method === 'HEAD'
  return {
    ...(!isHead && { range, ifRange }),
    ifMatch: readTags(ifMatch, false),
    ifNoneMatch: readTags(ifNoneMatch, true),
    isTagged: [ifRange, ifMatch, ifNoneMatch].some((given) => given !== undefined) || isHead,
  }
}

export const writeRawFile = route(contract.writeRawFile, (asked, app) => {
  const { path, path_base64 = Buffer.from(path!).toString('base64'), mode, overwrite } = asked.query
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = asked.headers
  // The arguments are sent in a header, in which base64 keeps every path short.
  const args = {
    ...{ path_base64, mode, overwrite: overwrite !== 'false' },
    ifMatch: readTags(ifMatch, false),
    isNew: ifNoneMatch !== undefined,
  }
  return stream(app, 'writeRaw', asked, args, { lost: notWritten, upload: asked.request })
})

export const makeDirectory = route(fileChanges.makeDirectory, (asked, app) =>
  call(app, 'makeDirectory', asked, asked.body, notChanged),
)

export const moveFile = route(fileChanges.moveFile, (asked, app) =>
  call(app, 'moveFile', asked, asked.body, notChanged),
)

export const removeFile = route(fileChanges.removeFile, (asked, app) =>
  call(app, 'removeFile', asked, asked.body, notChanged),
)

export const changeFileMode = route(fileChanges.changeFileMode, (asked, app) =>
  call(app, 'changeFileMode', asked, asked.body, notChanged),
)

interface FileRequest {
  account: { id: string }
  params: { id: string }
  requestId: string
  signal: AbortSignal
}

async function call<N extends CallName>(
  app: App,
  name: N,
  asked: FileRequest,
  args: Omit<Calls[N]['args'], keyof InSandbox>,
  lost: string,
): Promise<Calls[N]['result']> {
  const { sandbox, signal } = await enter(app, asked)
  const all = { ...args, ...sandbox } as Calls[N]['args']
  return app.workers.call(name, all, { signal, timeoutMs }).catch(reportLost(lost))
}

async function stream<N extends StreamCallName>(
  app: App,
  name: N,
  asked: FileRequest,
  args: Omit<Streams[N]['args'], keyof InSandbox>,
  { lost, upload }: { lost: string; upload?: IncomingMessage },
): Promise<StreamReply> {
  const { sandbox, signal, leftMs } = await enter(app, asked)
  const all = { ...args, ...sandbox } as Streams[N]['args']
  // The reply to an upload arrives after its last byte, and an upload may last until the sandbox expires.
  const options = upload ? { signal, upload, timeoutMs: leftMs + timeoutMs } : { signal, timeoutMs }
  return new StreamReply(await app.workers.stream(name, all, options).catch(reportLost(lost)))
}

async function enter(app: App, { account, params, requestId, signal }: FileRequest) {
  const own = { accountId: account.id, sandboxId: params.id }
  const { leftMs } = await awaitRunning(app, { ...own, signal })
  return { sandbox: { ...own, requestId }, signal, leftMs }
}
