/** Lists the entries of a directory, and the paths that match a glob pattern. */
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { FileEntry } from '../../shared/contract/files.ts'
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate, oddNames, readName } from './location.ts'
import { makeMatcher } from './matcher.ts'
import { deepest, findPatterns, literalStart, type Pattern, readPattern, wantsDots } from './pattern.ts'
import { limitItems, readRecords } from './records.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/** Maximum time to list entries. After this time, the list is truncated. */
const timeoutMs = 30_000
/** Maximum output of a script. Above the limit, the list is truncated. */
const maxBytes = 64 * 1024 * 1024

/**
 * Prints each entry in the given `stat` format. The format contains sentinels, which no file name can
 * contain.
 */
const listScript = `${probes}
f=$1 format=$2
if [ -d "$f" ]; then
  cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
  find . -mindepth 1 -maxdepth 1 -print0 2>/dev/null | sorted | xargs -0 stat -c "$format" 2>/dev/null
  exit 0
fi
if [ ! -e "$f" ] && [ ! -L "$f" ]; then missing "$f"; fi
stat -c "$format" "$f"`

/** For a path that is not a directory, returns the file's own entry. */
export const listFiles = limitPerSandbox<'listFiles'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  const sentinel = randomBytes(16).toString('hex')
  const entries: FileEntry[] = []
  const { enough, add } = limitItems()
  const onRecord = (record: Buffer) => {
    const entry = enough.aborted ? undefined : readEntry(record, Buffer.from(sentinel))
    if (entry) add(entries, entry, limits.listed.entries)
  }
  const end = await runFileScript(worker, args, signal, {
    text: listScript,
    args: [word, `%f %s %Y %y${sentinel}%n${sentinel}%N${sentinel}${sentinel}`],
    maxBytes,
    onStdout: readRecords(args.accountId, {
      delimiter: Buffer.from(`${sentinel}${sentinel}\n`),
      onRecord,
    }),
    enough,
    timeoutMs,
  })
  if (end === 'timed_out' && entries.length === 0) throw tooSlow('List a smaller directory.')
  return { ...shown, entries, truncated: end !== 'whole' }
})

/** The scripts sort all names before they print, so a script that timed out has printed nothing. */
const tooSlow = (action: string) =>
  new Problem('invalid_request', `Collecting the names took longer than ${timeoutMs / 1000} s. ${action}`)

const types: Record<number, FileEntry['type']> = {
  1: 'fifo',
  2: 'character',
  4: 'directory',
  6: 'block',
  8: 'file',
  10: 'symlink',
  12: 'socket',
}

/**
 *
 * @param record `MODE_HEX SIZE SECONDS DATE TIME ZONE`, sentinel, name, sentinel, `NAME -> TARGET` of a
 *   symlink
 */
function readEntry(record: Buffer, sentinel: Buffer): FileEntry | undefined {
  const nameAt = record.indexOf(sentinel)
  const targetAt = record.indexOf(sentinel, nameAt + sentinel.length)
  if (nameAt === -1 || targetAt === -1) return undefined
  const [hex = '', size, seconds, date, time] = record.toString('latin1', 0, nameAt).split(' ')
  const path = record.subarray(nameAt + sentinel.length, targetAt)
  const name = Buffer.from(basename(path.toString('latin1')), 'latin1')
  const mode = Number.parseInt(hex, 16)
  const type = types[mode >> 12]
  if (!type || !/^\d+$/.test(size ?? '') || !/^-?\d+$/.test(seconds ?? '')) return undefined
  const { text, base64 } = readName(name)
  const bytes = type === 'symlink' ? targetOf(record.subarray(targetAt + sentinel.length), path) : undefined
  const target = bytes && readName(bytes)
  return {
    name: text,
    ...(base64 === undefined ? {} : { name_base64: base64 }),
    type,
    size: Number(size),
    mode: (mode & 0o7777).toString(8).padStart(3, '0'),
    modified_at: readTime(Number(seconds), `${date}T${time}`),
    ...(target === undefined ? {} : { target: target.text }),
    ...(target?.base64 === undefined ? {} : { target_base64: target.base64 }),
  }
}

/** Parses the target from `NAME -> TARGET`. BusyBox `stat` quotes both names. */
function targetOf(shown: Buffer, path: Buffer): Buffer | undefined {
  const plain = Buffer.concat([path, Buffer.from(' -> ')])
  if (shown.subarray(0, plain.length).equals(plain)) return shown.subarray(plain.length)
  const quoted = Buffer.concat([Buffer.from("'"), path, Buffer.from("' -> '")])
  if (shown.subarray(0, quoted.length).equals(quoted)) return shown.subarray(quoted.length, -1)
  return undefined
}

/**
 * First and last second of ISO 8601's four-digit years. A file's time outside this range is clamped to it.
 */
const years = {
  first: Date.parse('0000-01-01T00:00:00Z') / 1000,
  last: Date.parse('9999-12-31T23:59:59Z') / 1000,
}

/** Converts a modification time to ISO 8601, including milliseconds if `stat` printed them. */
function readTime(seconds: number, dateTime: string): string {
  const [whole = '', fraction = ''] = dateTime.split('.')
  const precise = new Date(`${whole}.${fraction.padEnd(3, '0').slice(0, 3)}Z`)
  const isSame = Math.floor(precise.getTime() / 1000) === seconds
  const clamped = Math.min(Math.max(seconds, years.first), years.last)
  return (isSame && clamped === seconds ? precise : new Date(clamped * 1000)).toISOString()
}

/** Linux cannot open longer paths. */
const pathBytes = 4096

/**
 * Prints the paths below a directory. Skips names that disappear and directories that it is not allowed to
 * read.
 */
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

/** Returns `find` arguments that print all matching paths, and possibly more. */
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
