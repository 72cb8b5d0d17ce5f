import { createHash, randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Calls } from '../../shared/rpc/calls.ts'
import { GrowingBuffer } from '../drivers/growing-buffer.ts'
import { MarkFinder } from '../shell/mark.ts'
import { markStart, type Path } from '../shell/script.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate } from './location.ts'
import { writing } from './place.ts'
import { replaceExact } from './replace.ts'
import { inSlices, type Steps } from './slices.ts'
import { oneOfFew } from './turns.ts'

/**
 * One command in two steps. The script prints the file and a mark, then waits for the sha256 of the new content and of
 * the old one, and for the content. If nothing comes, it does nothing. It refuses when the file has changed. What a
 * command of the client writes between that check and the rename, some milliseconds, is lost.
 *
 * An edit that is to be refused for its text has no new content, but looks again too: a file that is written over in
 * place may have been read half-written.
 */
const script = `${probes}${writing}
most=$2 mark=$3
follow "$1"
must_be_file "$f"
must_be_replaceable
if [ "$(wc -c <"$f")" -gt "$most" ]; then exit ${exits.tooLarge}; fi
head -c "$most" "$f" || exit 1
printf '${markStart}%s\\n' "$mark"
read -r whole before || exit 0
if [ "$whole" = none ]; then be_unchanged_in_turn "$before"; exit; fi
receive
be_whole "$whole"
take_turn
set_mode keep
be_unchanged "$before"
put keep`

/** Edits of one path through this worker take turns, so that few are done in vain. */
const ofPath = limitByKey()
/** How often an edit is done when the file changes under it each time. */
const mostTries = 5
/** An account has two edits at a time: one of the largest file holds some 60 MiB. */
const ofAccount = limitByKey(2)
const inTurn = <T>({ sandboxId, accountId }: EditArgs, path: string, work: () => Promise<T>): Promise<T> =>
  ofPath(`${sandboxId} ${path}`, () => ofAccount(accountId, work))
/** Bytes that the script prints beside the file: the line of its mark. */
const markBytes = 1024

export const editFile = oneOfFew<'editFile'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  const { refusal, edited } = await inTurn(args, shown.path, () => edit({ worker, args, word, signal }))
  if (refusal) throw refusal
  const { content, sha256, replacements } = edited
  return { ...shown, size: content.length, sha256, replacements }
})

interface Edit {
  worker: Parameters<typeof runFileScript>[0]
  args: EditArgs
  word: Path
  signal: AbortSignal
}

/** An edit of a file that changed meanwhile is decided again on what the file has become. */
async function edit(it: Edit): Promise<Decision> {
  for (let tries = 1; ; tries++) {
    try {
      return await tryToEdit(it)
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'file_changed') || tries === mostTries) throw error
    }
  }
}

async function tryToEdit({ worker, args, word, signal }: Edit): Promise<Decision> {
  const mark = randomBytes(16).toString('hex')
  const { io, result } = twoSteps(mark, (content) => inSlices(args.accountId, decide(content, args)))
  await runFileScript(worker, args, signal, {
    text: script,
    args: [word, String(limits.editBytes), mark],
    mostBytes: limits.editBytes + markBytes,
    ...io,
  })
  return result()
}

/** What becomes of a file with this sha256, if it is still that file. */
type Decision = { before: string } & (
  | { edited: EditResult; refusal?: undefined }
  | { refusal: Problem; edited?: undefined }
)

interface EditResult {
  content: Buffer
  sha256: string
  replacements: number
}

type EditArgs = Calls['editFile']['args']

function* decide(content: Buffer, args: EditArgs): Steps<Decision> {
  const before = yield* sha256Of(content)
  try {
    return { before, edited: yield* change(content, before, args) }
  } catch (error) {
    if (error instanceof Problem) return { before, refusal: error }
    throw error
  }
}

/** @throws {Problem} */
function* change(content: Buffer, before: string, args: EditArgs): Steps<EditResult> {
  if (args.if_match !== undefined && args.if_match !== before) {
    throw new Problem('file_changed', 'The file is not the one that if_match means; nothing was written.', {
      members: { sha256: before },
    })
  }
  const changed = yield* replaceExact(content, { old: args.old, new: args.new, replaceAll: args.replace_all })
  return { ...changed, sha256: yield* sha256Of(changed.content) }
}

/** Bytes that are hashed in one step: less than a millisecond. */
const hashedAtOnce = 128 * 1024

function* sha256Of(bytes: Buffer): Steps<string> {
  const hash = createHash('sha256')
  for (let from = 0; from < bytes.length; from += hashedAtOnce) {
    hash.update(bytes.subarray(from, from + hashedAtOnce))
    yield
  }
  return hash.digest('hex')
}

/** Reads up to the mark, decides, and answers on the script's stdin. */
function twoSteps(mark: string, decide: (content: Buffer) => Promise<Decision>) {
  const finder = new MarkFinder(mark)
  const kept = new GrowingBuffer(limits.editBytes)
  const outcome: { stdin?: Writable; decision?: Decision; error?: unknown } = {}
  return {
    io: {
      stdin: (stdin: Writable) => {
        outcome.stdin = stdin
      },
      async onStdout(chunk: Buffer) {
        const { output, line } = finder.push(chunk)
        kept.push(output)
        if (line === undefined) return
        try {
          outcome.decision = await decide(kept.bytes)
          const { before, edited } = outcome.decision
          outcome.stdin?.write(`${edited?.sha256 ?? 'none'} ${before}\n`)
          if (edited) outcome.stdin?.write(edited.content)
        } catch (error) {
          outcome.error = error
        }
        outcome.stdin?.end()
      },
    },
    result(): Decision {
      if (outcome.error) throw outcome.error
      if (outcome.decision) return outcome.decision
      throw new Problem('internal_error', 'The file script printed no file.')
    },
  }
}
