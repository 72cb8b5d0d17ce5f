import type { FileEntry, ListedEntry } from '../../shared/contract/files.ts'
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Calls } from '../../shared/rpc/calls.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import { entryFormat, type FoundEntry, readEntry } from './entries.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate, oddNames, prefixOf, readName, show } from './location.ts'
import {
  deepest,
  findPatterns,
  literalStart,
  makeMatcher,
  type Pattern,
  readPattern,
  wantsDots,
} from './pattern.ts'
import { limitItems, readRecords } from './records.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/** Time limit for a listing. If it is exceeded, the list is truncated. */
export const timeoutMs = 30_000
/** Maximum output of a listing script. If it is exceeded, the list is truncated. */
const maxBytes = 64 * 1024 * 1024

/**
 * Lists the directory or file at a path in the given `stat` format. The format's delimiters cannot occur in a
 * file name.
 */
const listScript = `${probes}
f=$1 format=$2 depth=$3
if [ "$depth" -gt 0 ] && [ -d "$f" ]; then
  cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
  find . -mindepth 1 -maxdepth "$depth" -print0 2>/dev/null | sorted | xargs -0 stat -c "$format" 2>/dev/null
  exit 0
fi
if [ ! -e "$f" ] && [ ! -L "$f" ]; then missing "$f"; fi
stat -c "$format" "$f"`

/** Lists a directory. For any other path, returns the file's own entry. */
export const listFiles = limitPerSandbox<'listFiles'>(async (args, worker, { signal }) => {
  const { depth = 1 } = args
  const prefix = prefixOf(args)
  const entries: ListedEntry[] = []
  const { enough, add } = limitItems()
  const onEntry = ({ path, entry }: FoundEntry) => {
    if (enough.aborted) return
    const isBelow = path.subarray(0, 2).toString() === './'
    const below = depth > 1 && isBelow ? show(Buffer.concat([prefix, path.subarray(2)])) : {}
    add(entries, { ...below, ...entry }, limits.listed.entries)
  }
  const end = await runList(args, worker, signal, { depth, onEntry, enough })
  if (end === 'timed_out' && entries.length === 0) throw tooSlow('List a smaller directory.')
  return { ...locate(args).shown, entries, truncated: end !== 'whole' }
})

/** Returns the entry of a path, without following a symlink. */
export const statFile = limitPerSandbox<'statFile'>(async (args, worker, { signal }) => {
  let found: FileEntry | undefined
  const onEntry = ({ entry }: FoundEntry) => {
    found ??= entry
  }
  await runList(args, worker, signal, { depth: 0, onEntry })
  if (!found) throw new Problem('internal_error', 'The internal script that lists files printed no entry.')
  const { shown } = locate(args)
  return { ...shown, ...found, name: shown.path === '/' ? '/' : found.name }
})

/** @param options.depth levels of directories to list, or 0 for the entry of the path itself */
async function runList(
  args: Calls['statFile']['args'],
  worker: SandboxContext,
  signal: AbortSignal,
  { depth, onEntry, enough }: { depth: number; onEntry(found: FoundEntry): void; enough?: AbortSignal },
) {
  const { format, delimiter, split } = entryFormat()
  const onRecord = (record: Buffer) => {
    const found = readEntry(split(record))
    if (found) onEntry(found)
  }
  return await runFileScript(worker, args, signal, {
    text: listScript,
    args: [locate(args).word, format, String(depth)],
    maxBytes,
    onStdout: readRecords(args.accountId, { delimiter, onRecord }),
    ...(enough && { enough }),
    timeoutMs,
  })
}

/**
 * Returns the error for a script that timed out without output. The scripts print nothing until they have
 * sorted all names.
 */
export const tooSlow = (action: string) =>
  new Problem('invalid_request', `Collecting the names took longer than ${timeoutMs / 1000} s. ${action}`)

/** Maximum length of a path that Linux can open. */
const pathBytes = 4096

/** Prints the paths under a directory. Skips names that disappear and unreadable directories. */
const globScript = `${probes}
f=$1; shift
if [ ! -d "$f" ]; then
  if [ -e "$f" ]; then exit ${exits.notDirectory}; fi
  missing "$f"
fi
cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
find -H "$@" -print0 2>/dev/null | sorted
exit 0`

export const globFiles = limitPerSandbox<'globFiles'>(async (args, worker, { signal }) => {
  const { word } = locate(args)
  const pattern = readPattern(args.pattern)
  const matches = makeMatcher(pattern, { dots: false })
  const names: ReturnType<typeof readName>[] = []
  const { enough, add } = limitItems()
  const onPath = (record: Buffer) => {
    const path = record.subarray(prefix.length)
    if (!enough.aborted && matches(path.toString('utf8'))) add(names, readName(path), limits.listed.paths)
  }
  let isTooLong = false
  const end = await runFileScript(worker, args, signal, {
    text: globScript,
    args: [word, ...searchFor(pattern, args.pattern.endsWith('/'))],
    maxBytes,
    onStdout: readRecords(args.accountId, {
      delimiter: Buffer.of(0),
      maxBytes: prefix.length + pathBytes,
      onRecord: onPath,
      onTooLong: () => {
        isTooLong = true
      },
    }),
    enough,
    timeoutMs,
  })
  if (end === 'timed_out' && names.length === 0)
    throw tooSlow('Use a more specific pattern, or search a smaller directory.')
  const odd = oddNames(names.map(({ base64 }) => base64))
  return {
    paths: names.map(({ text }) => text),
    ...(odd && { paths_base64: odd }),
    truncated: isTooLong || end !== 'whole',
  }
})

/** Prefix of every path that `find` prints. */
const prefix = './'

/** Returns `find` arguments that select all matching paths, and possibly more. */
function searchFor(pattern: Pattern, onlyDirectories: boolean): string[] {
  const start = literalStart(pattern)
  const depth = deepest(pattern)
  const paths = findPatterns(pattern).flatMap((path) => ['-o', '-path', path])
  return [
    ['.', ...start].join('/'),
    ...(depth === undefined ? [] : ['-maxdepth', String(depth - start.length)]),
    ...(wantsDots(pattern) ? [] : ['-name', '.?*', '-prune', '-o']),
    ...(onlyDirectories ? ['-type', 'd'] : []),
    '(',
    ...paths.slice(1),
    ')',
  ]
}
