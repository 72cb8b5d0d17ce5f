import { limits } from '../../shared/contract/limits.ts'
import type { Call } from '../calls/call.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate, readName } from './location.ts'
import {
  deepest,
  findPatterns,
  literalStart,
  matchesPattern,
  type Pattern,
  readPattern,
  wantsDots,
} from './pattern.ts'
import { FirstInOrder, splitRecords } from './records.ts'

/** What was found by then is the answer, and said to be cut. */
const timeoutMs = 30_000

/** Names that vanish, and folders that may not be read, are passed over. */
const script = `${probes}
f=$1; shift
if [ ! -d "$f" ]; then
  if [ -e "$f" ]; then exit ${exits.notDirectory}; fi
  missing "$f"
fi
cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
find -H "$@" -print0 2>/dev/null
exit 0`

/** Finds paths that match a pattern. */
export const globFiles: Call<'globFiles'> = async (args, worker, signal) => {
  const { word } = locate(args)
  const pattern = readPattern(args.pattern)
  const found = new FirstInOrder<Buffer>(limits.listed.paths)
  const onPath = (record: Buffer) => {
    // `./` stands before each.
    const path = record.subarray(2)
    if (matchesPattern(pattern, path.toString('utf8'), { dots: false })) found.push(path, Buffer.from(path))
  }
  const end = await runFileScript(
    worker,
    args,
    {
      text: script,
      args: [word, ...searchFor(pattern, args.pattern.endsWith('/'))],
      onStdout: splitRecords(Buffer.of(0), onPath),
      enough: new AbortController().signal,
      timeoutMs,
    },
    signal,
  )
  const names = found.values().map(readName)
  const odd = names.flatMap(({ base64 }, index) => (base64 === undefined ? [] : [[index, base64] as const]))
  return {
    paths: names.map(({ text }) => text),
    ...(odd.length === 0 ? {} : { paths_base64: Object.fromEntries(odd) }),
    truncated: found.truncated || end === 'cut',
  }
}

/** The arguments of a `find` that prints at least what matches, and walks through little else. */
function searchFor(pattern: Pattern, foldersAlone: boolean): string[] {
  const start = literalStart(pattern)
  const depth = deepest(pattern)
  const paths = findPatterns(pattern).flatMap((path) => ['-o', '-path', path])
  return [
    ['.', ...start].join('/'),
    ...(depth === undefined ? [] : ['-maxdepth', String(depth - start.length)]),
    ...(wantsDots(pattern) ? [] : ['-name', '.?*', '-prune', '-o']),
    ...(foldersAlone ? ['-type', 'd'] : []),
    '(',
    ...paths.slice(1),
    ')',
  ]
}
