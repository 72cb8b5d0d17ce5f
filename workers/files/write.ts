import { createHash } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import type { StreamHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import { streamMs } from './file-script.ts'
import { locate } from './location.ts'
import { writeWhole } from './place.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

export const createFile = limitPerSandbox<'createFile'>(async (args, worker, { signal }) => {
  const location = locate(args)
  const bytes = Buffer.from(args.content, args.encoding === 'base64' ? 'base64' : 'utf8')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const { mode, overwrite } = args
  await writeWhole(worker, args, signal, { location, mode, overwrite, content: { bytes, sha256 } })
  return { ...location.shown, size: bytes.length, sha256 }
})

export const writeRaw: StreamHandler<'writeRaw', SandboxContext> = async (
  args,
  worker,
  { request, response, signal },
) => {
  const location = locate(args)
  const { mode, ifMatch } = args
  const overwrite = args.isNew ? 'new' : args.overwrite
  const sent = { size: 0, sha256: '' }
  const content = (stdin: Writable) => feed(request, stdin, sent)
  await writeWhole(worker, args, signal, {
    ...{ location, mode, overwrite, ifMatch, content },
    timeoutMs: streamMs,
  })
  response.statusCode = 201
  return { ...location.shown, ...sent }
}

/**
 * Writes a request body to the script's stdin, followed by its SHA-256 hash. If the script exits early, still
 * reads the rest of the body, because the next request follows it on the connection.
 */
function feed(body: Readable, stdin: Writable, sent: { size: number; sha256: string }) {
  const hash = createHash('sha256')
  body.on('data', (chunk: Buffer) => {
    if (stdin.destroyed) return
    hash.update(chunk)
    sent.size += chunk.length
    if (!stdin.write(chunk)) body.pause()
  })
  body.on('end', () => {
    sent.sha256 = hash.digest('hex')
    if (!stdin.destroyed) stdin.end(sent.sha256)
  })
  body.on('error', () => stdin.destroy())
  for (const event of ['drain', 'close']) stdin.on(event, () => body.resume())
}
