import { limits } from '../../shared/contract/limits.ts'
import type { CallHandler } from '../sandbox/call.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate, readName } from './location.ts'
import { makeMatcher } from './matcher.ts'
import { deepest, findPatterns, literalStart, type Pattern, readPattern, wantsDots } from './pattern.ts'
import { FirstInOrder, jsonBytes, readRecords } from './records.ts'
import { shareOf } from './slices.ts'

/** After this time the answer is what was found so far, and `truncated`. */
const timeoutMs = 30_000
/** Bytes of paths that `find` may print. Beyond it the answer is what was found so far. */
const mostBytes = 64 * 1024 * 1024
/** Linux takes no longer path, so nobody could use one. */
const pathBytes = 4096

/** Skips names that vanish, and folders that may not be read. */
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
export const globFiles: CallHandler<'globFiles'> = async (args, worker, signal) => {
  const { word } = locate(args)
  const pattern = readPattern(args.pattern)
  const matches = makeMatcher(pattern, { dots: false })
  const found = new FirstInOrder<Name>({ count: limits.listed.paths, bytes: limits.listed.bytes })
  const onPath = (record: Buffer) => {
    const path = record.subarray(prefix.length)
    if (!matches(path.toString('utf8'))) return
    found.push(path, () => {
      const name = readName(path)
      return { value: name, bytes: jsonBytes(Object.values(name)) }
    })
  }
  let isTooLong = false
  const end = await runFileScript(
    worker,
    args,
    {
      text: script,
      args: [word, ...searchFor(pattern, args.pattern.endsWith('/'))],
      mostBytes,
      onStdout: readRecords(shareOf(args.accountId), {
        delimiter: Buffer.of(0),
        mostBytes: prefix.length + pathBytes,
        onRecord: onPath,
        onTooLong: () => {
          isTooLong = true
        },
      }),
      enough: new AbortController().signal,
      timeoutMs,
    },
    signal,
  )
  const names = found.values()
  const odd = names.flatMap(({ base64 }, index) => (base64 === undefined ? [] : [[index, base64] as const]))
  return {
    paths: names.map(({ text }) => text),
    ...(odd.length === 0 ? {} : { paths_base64: Object.fromEntries(odd) }),
    truncated: found.truncated || isTooLong || end === 'cut',
  }
}

type Name = ReturnType<typeof readName>

/** What `find` prints before each path. */
const prefix = './'

/** The arguments of a `find` that prints at least what matches, and visits little else. */
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
