import { basename } from 'node:path'
import type * as z from 'zod'
import type { files } from '../../shared/contract/files.ts'
import { limits } from '../../shared/contract/limits.ts'
import { wholeCharacters } from '../shell/output.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { type DisplayPath, locate, oddNames, prefixOf, readName, show } from './location.ts'
import { findPart, findPatterns, makeMatcher, readPattern } from './pattern.ts'
import { limitItems, readRecords } from './records.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/** Time limit for a search. If it is exceeded, the matches found so far are returned with `truncated` set. */
const timeoutMs = 30_000
/**
 * Maximum output of the search script. It exceeds the maximum response size, because the script may also
 * search files that do not match `include`, whose matches the worker drops.
 */
const maxBytes = 64 * 1024 * 1024
/** Bytes added to the maximum length of a matching line for its line number, which `grep` prints first. */
const numberBytes = 20

/**
 * Searches a batch of files. For each file with matches, prints `F` and the name, then the matching lines, or
 * only `B` if the file is binary. Each record ends with a NUL.
 */
const someFiles = `
flags=$1 pattern=$2 most=$3 bytes=$4; shift 4
for f do shift; if [ -r "$f" ]; then set -- "$@" "$f"; fi; done
if [ $# -eq 0 ]; then exit 0; fi
LC_ALL=C.UTF-8; export LC_ALL
counts=$(grep -c -h -a "-$flags" -e "$pattern" -- "$@" 2>/dev/null)
n=0; for c in $counts; do n=$((n + 1)); done
if [ $n -ne $# ]; then
  counts=
  for f do counts="$counts $(grep -c -h -a "-$flags" -e "$pattern" -- "$f" 2>/dev/null || [ $? -eq 1 ] || echo 0)"; done
fi
for c in $counts; do
  f=$1; shift
  if [ "$c" = 0 ]; then continue; fi
  printf 'F%s\\000' "$f"
  if [ "$(tr -dc '\\000' <"$f" | wc -c)" -ne 0 ]; then printf 'B\\000'; continue; fi
  grep -n -a -m "$most" "-$flags" -e "$pattern" -- "$f" 2>/dev/null |
    LC_ALL=C cut -b "-$bytes" | tr '\\n' '\\000'
done
`

/**
 * Searches a path. Files are sorted by the bytes of their paths before they are searched, so that a search
 * that stops at the limit always returns the first matches.
 */
const script = `${probes}
f=$1 each=$2 flags=$3 pattern=$4 most=$5 bytes=$6; shift 6
isBad=; words=$(echo | LC_ALL=C.UTF-8 grep -a "-$flags" -e "$pattern" 2>&1 >/dev/null)
if [ $? -gt 1 ]; then isBad=1; fi
case $words in *warning:*) isBad=1;; esac
if [ "$isBad" ]; then printf '%s\\n' "$words" >&2; exit ${exits.badPattern}; fi
if [ ! -d "$f" ]; then
  must_be_file "$f"
  exec sh -c "$each" sh "$flags" "$pattern" "$most" "$bytes" "$f"
fi
cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
find -H . -type f "$@" -print0 2>/dev/null | sorted | xargs -0 -n 128 sh -c "$each" sh "$flags" "$pattern" "$most" "$bytes"
exit 0`

type Match = z.output<typeof files.grepFiles.reply>['matches'][number]

export const grepFiles = limitPerSandbox<'grepFiles'>(async (args, worker, { signal }) => {
  const { word } = locate(args)
  const include = args.include === undefined ? undefined : readInclude(args.include)
  const maxMatches = limits.listed.matches
  const { enough, add } = limitItems()
  const matches: Match[] = []
  const skipped: DisplayPath[] = []
  const prefix = prefixOf(args)
  let file: DisplayPath | undefined
  const onRecord = (record: Buffer) => {
    const rest = record.subarray(1)
    if (record[0] === letterF) file = isIncluded(include, rest) ? nameOf(rest, prefix) : undefined
    else if (!file || enough.aborted) return
    else if (record[0] === letterB) add(skipped, file, maxMatches)
    else add(matches, { ...file, ...readLine(record) }, maxMatches)
  }
  const end = await runFileScript(worker, args, signal, {
    text: script,
    args: [
      word,
      someFiles,
      (args.fixed ? 'F' : 'E') + (args.ignoreCase ? 'i' : ''),
      args.pattern,
      String(maxMatches + 1),
      String(limits.grepLineBytes + numberBytes),
      ...(include?.find ?? []),
    ],
    maxBytes,
    onStdout: readRecords(args.accountId, { delimiter: Buffer.of(0), onRecord }),
    enough,
    timeoutMs,
  })
  const odd = oddNames(skipped.map(({ path_base64 }) => path_base64))
  return {
    matches,
    skipped_binary: skipped.map(({ path }) => path),
    ...(odd && { skipped_binary_base64: odd }),
    truncated: end !== 'whole',
  }
})

const letterF = 'F'.charCodeAt(0)
const letterB = 'B'.charCodeAt(0)

/**
 * Parses a matching line.
 * @param record `LINE:TEXT`; the text may be truncated
 */
function readLine(record: Buffer): Pick<Match, 'line' | 'text' | 'text_base64'> {
  const colon = record.indexOf(':')
  const text = record.subarray(colon + 1)
  const shown = text.length > limits.grepLineBytes ? text.subarray(0, limits.grepLineBytes) : text
  const whole = shown.length < text.length ? wholeCharacters(shown) : shown
  const { text: read, base64 } = readName(whole)
  const line = Number(record.toString('latin1', 0, colon))
  return { line, text: read, ...(base64 !== undefined && { text_base64: base64 }) }
}

/**
 * Returns the path of a found file. In a directory search, found names begin with `./`; any other name is the
 * file that the request named.
 */
const nameOf = (found: Buffer, prefix: Buffer): DisplayPath =>
  show(isBelow(found) ? Buffer.concat([prefix, found.subarray(2)]) : prefix.subarray(0, -1))

const isBelow = (found: Buffer) => found[0] === '.'.charCodeAt(0)

/**
 * Parses the `include` pattern. As in `grep --include`, a pattern without a slash matches base names, and a
 * file named by the request is always included.
 */
function readInclude(text: string) {
  const pattern = readPattern(text, 'include')
  const byName = !text.includes('/')
  const tests = byName
    ? pattern.alternatives.flatMap(([part]) => ['-o', '-name', part === 'any depth' ? '*' : findPart(part!)])
    : findPatterns(pattern).flatMap((path) => ['-o', '-path', path])
  const matches = makeMatcher(pattern, { dots: true })
  return {
    matches: (path: string) => matches(byName ? basename(path) : path),
    /** `find` tests that match all included files, and possibly more. */
    find: ['(', ...tests.slice(1), ')'],
  }
}

function isIncluded(include: ReturnType<typeof readInclude> | undefined, found: Buffer): boolean {
  return !include || !isBelow(found) || include.matches(found.subarray(2).toString('utf8'))
}
