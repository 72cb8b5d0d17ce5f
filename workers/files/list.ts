/** Lists of names: of a directory, and of what matches. */
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { FileEntry } from '../../shared/contract/files.ts'
import { limits } from '../../shared/contract/limits.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate, oddNames, readName } from './location.ts'
import { makeMatcher } from './matcher.ts'
import { deepest, findPatterns, literalStart, type Pattern, readPattern, wantsDots } from './pattern.ts'
import { limitItems, readRecords } from './records.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/** After this time the list is cut, and `truncated`. */
const timeoutMs = 30_000
/** Bytes that a script may print. Beyond it the list is cut. */
const maxBytes = 64 * 1024 * 1024

/** Prints the format of `stat` for each entry. No name can hold the marks in it. */
const listScript = `${probes}
f=$1 format=$2
if [ -d "$f" ]; then
  cd "$f" 2>/dev/null && [ -r . ] || exit ${exits.permissionDenied}
  find . -mindepth 1 -maxdepth 1 -print0 2>/dev/null | sorted | xargs -0 stat -c "$format" 2>/dev/null
  exit 0
fi
if [ ! -e "$f" ] && [ ! -L "$f" ]; then missing "$f"; fi
stat -c "$format" "$f"`

/** Lists a directory; for anything else, the entry itself. */
export const listFiles = limitPerSandbox<'listFiles'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  const mark = randomBytes(16).toString('hex')
  const entries: FileEntry[] = []
  const { enough, add } = limitItems()
  const onRecord = (record: Buffer) => {
    const entry = enough.aborted ? undefined : readEntry(record, Buffer.from(mark))
    if (entry) add(entries, entry, limits.listed.entries)
  }
  const end = await runFileScript(worker, args, signal, {
    text: listScript,
    args: [word, `%f %s %Y %y${mark}%n${mark}%N${mark}${mark}`],
    maxBytes,
    onStdout: readRecords(args.accountId, {
      delimiter: Buffer.from(`${mark}${mark}\n`),
      onRecord,
    }),
    enough,
    timeoutMs,
  })
  return { ...shown, entries, truncated: end === 'cut' }
})

const types: Record<number, FileEntry['type']> = {
  1: 'fifo',
  2: 'character',
  4: 'directory',
  6: 'block',
  8: 'file',
  10: 'symlink',
  12: 'socket',
}

/** @param record `mode in hex, size, seconds, date time zone` MARK name MARK name, and where it leads */
function readEntry(record: Buffer, mark: Buffer): FileEntry | undefined {
  const nameAt = record.indexOf(mark)
  const leadsAt = record.indexOf(mark, nameAt + mark.length)
  if (nameAt === -1 || leadsAt === -1) return undefined
  const [hex = '', size, seconds, date, time] = record.toString('latin1', 0, nameAt).split(' ')
  const path = record.subarray(nameAt + mark.length, leadsAt)
  const name = Buffer.from(basename(path.toString('latin1')), 'latin1')
  const mode = Number.parseInt(hex, 16)
  const type = types[mode >> 12]
  if (!type || !/^\d+$/.test(size ?? '') || !/^-?\d+$/.test(seconds ?? '')) return undefined
  const { text, base64 } = readName(name)
  const leads = type === 'symlink' ? targetOf(record.subarray(leadsAt + mark.length), path) : undefined
  const target = leads && readName(leads)
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

/** `name -> target`, each between quotes where the image's `stat` is busybox's. */
function targetOf(shown: Buffer, path: Buffer): Buffer | undefined {
  const plain = Buffer.concat([path, Buffer.from(' -> ')])
  if (shown.subarray(0, plain.length).equals(plain)) return shown.subarray(plain.length)
  const quoted = Buffer.concat([Buffer.from("'"), path, Buffer.from("' -> '")])
  if (shown.subarray(0, quoted.length).equals(quoted)) return shown.subarray(quoted.length, -1)
  return undefined
}

/** The years that four digits can show, in seconds: a file may claim any other. */
const years = {
  first: Date.parse('0000-01-01T00:00:00Z') / 1000,
  last: Date.parse('9999-12-31T23:59:59Z') / 1000,
}

/** With milliseconds where `stat` tells them. */
function readTime(seconds: number, dateTime: string): string {
  const [whole = '', fraction = ''] = dateTime.split('.')
  const precise = new Date(`${whole}.${fraction.padEnd(3, '0').slice(0, 3)}Z`)
  const isSame = Math.floor(precise.getTime() / 1000) === seconds
  const told = Math.min(Math.max(seconds, years.first), years.last)
  return (isSame && told === seconds ? precise : new Date(told * 1000)).toISOString()
}

/** Linux takes no longer path, so nobody could use one. */
const pathBytes = 4096

/** Skips names that vanish, and folders that may not be read. */
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
  const odd = oddNames(names.map(({ base64 }) => base64))
  return {
    paths: names.map(({ text }) => text),
    ...(odd && { paths_base64: odd }),
    truncated: isTooLong || end === 'cut',
  }
})

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
