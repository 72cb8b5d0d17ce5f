/**
 * Edits a file: reads it completely, replaces text, and writes it back only if the file has not changed. If a
 * client's command writes to the file in the few milliseconds between the check and the rename, the command's
 * write is lost.
 */
import { createHash } from 'node:crypto'
import { limits } from '../../shared/contract/limits.ts'
import { GrowingBuffer } from '../../shared/lib/growing-buffer.ts'
import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Calls } from '../../shared/rpc/calls.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import { runCooperatively, type Steps } from './cooperative.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { type Location, locate } from './location.ts'
import { writeWhole, writing } from './place.ts'
import { memoryToReplace, type Replacement, replaceExact } from './replace.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

const readScript = `${probes}${writing}
follow "$1"
must_be_file "$f"
must_be_replaceable
if [ "$(wc -c <"$f")" -gt "$2" ]; then exit ${exits.tooLarge}; fi
exec head -c "$2" "$f"`

/**
 * Checks under the sandbox's write lock that a file has not changed since it was read. Because the file may
 * have been read half-written, this check runs before an edit is rejected; if it fails, the edit is retried.
 */
const checkScript = `${probes}${writing}
follow "$1"
be_unchanged_under_lock "$2"`

/** Serializes edits to the same path within this worker, so that fewer of them need to be retried. */
const serializeByPath = limitByKey()
/** Maximum number of attempts per edit. An attempt fails if the file is changed concurrently. */
const maxAttempts = 5

export const editFile = limitPerSandbox<'editFile'>((args, worker, { signal, held }) => {
  const location = locate(args)
  return serializeByPath(`${args.sandboxId} ${location.shown.path}`, async () => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await editOnce({ args, worker, signal, location }, held)
      } catch (error) {
        const isChanged = error instanceof Problem && error.code === 'precondition_failed'
        if (!isChanged || attempt === maxAttempts) throw error
      }
    }
  })
})

interface Edit {
  args: Calls['editFile']['args']
  worker: SandboxContext
  signal: AbortSignal
  location: Location
}

async function editOnce(edit: Edit, held: Reservation): Promise<Calls['editFile']['result']> {
  const { args, worker, signal, location } = edit
  const memory = held.move('requests', 0)
  try {
    const before = await readWhole(edit, memory)
    const sha256Before = await runCooperatively(args.accountId, sha256Of(before))
    const text = { old: args.old, new: args.new, replaceAll: args.replace_all }
    memory.add(memoryToReplace(before, text))
    const { content, replacements } = await refuseOrReplace(edit, before, sha256Before, text)
    const sha256 = await runCooperatively(args.accountId, sha256Of(content))
    const change = { overwrite: true, ifMatch: [sha256Before], content: { bytes: content, sha256 } }
    await writeWhole(worker, args, signal, { location, ...change })
    return { ...location.shown, size: content.length, sha256, replacements }
  } finally {
    memory.free()
  }
}

async function readWhole(
  { args, worker, signal, location }: Edit,
  memory: Pick<Reservation, 'add'>,
): Promise<Buffer> {
  const content = new GrowingBuffer(limits.editBytes)
  const refused = new AbortController()
  const onStdout = (chunk: Buffer) => {
    try {
      memory.add(chunk.length)
      content.push(chunk)
    } catch (error) {
      refused.abort(error)
    }
  }
  await runFileScript(worker, args, AbortSignal.any([signal, refused.signal]), {
    text: readScript,
    args: [location.word, String(limits.editBytes)],
    maxBytes: limits.editBytes,
    onStdout,
  }).catch((error) => {
    refused.signal.throwIfAborted()
    throw error
  })
  return content.bytes
}

async function refuseOrReplace(
  { args, worker, signal, location }: Edit,
  content: Buffer,
  sha256: string,
  text: Replacement,
) {
  try {
    if (args.if_match !== undefined && args.if_match !== sha256) {
      throw new Problem(
        'precondition_failed',
        'The file does not match if_match; nothing was written. Read the file again.',
        { members: { sha256 } },
      )
    }
    return await runCooperatively(args.accountId, replaceExact(content, text))
  } catch (error) {
    if (error instanceof Problem) {
      await runFileScript(worker, args, signal, { text: checkScript, args: [location.word, sha256] })
    }
    throw error
  }
}

/** Bytes hashed per step. A step takes less than a millisecond. */
const hashStepBytes = 128 * 1024

function* sha256Of(bytes: Buffer): Steps<string> {
  const hash = createHash('sha256')
  for (let from = 0; from < bytes.length; from += hashStepBytes) {
    hash.update(bytes.subarray(from, from + hashStepBytes))
    yield
  }
  return hash.digest('hex')
}
