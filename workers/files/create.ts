import { createHash } from 'node:crypto'
import type { CallHandler } from '../sandbox/call.ts'
import { locate } from './location.ts'
import { writeWhole } from './write.ts'

/** Writes a file whole, or not at all. */
export const createFile: CallHandler<'createFile'> = async (args, worker, signal) => {
  const location = locate(args)
  const bytes = Buffer.from(args.content, args.encoding === 'base64' ? 'base64' : 'utf8')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const { mode, overwrite } = args
  await writeWhole(worker, args, { location, mode, overwrite, content: { bytes, sha256 } }, signal)
  return { ...location.shown, size: bytes.length, sha256 }
}
