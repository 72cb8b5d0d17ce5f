/**
 * Watches a path by comparing listings. A script in the sandbox lists the path each time the worker sends a
 * line, so the script stops when the worker disconnects, and a slow client delays the next listing.
 */
import type { Writable } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { type WatchEvent, watchInterrupted } from '../../shared/contract/watch-events.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { Streams } from '../../shared/rpc/calls.ts'
import { write } from '../rpc/bytes.ts'
import type { StreamHandler, Wire } from '../rpc/call.ts'
import { eventHeaders, keepAlive, maxBatchLength } from '../rpc/event-stream.ts'
import { enter, limitOpen, type SandboxContext } from '../sandbox/enter.ts'
import { entryFormat, readEntry } from './entries.ts'
import { exits, probes, runFileScript, streamMs } from './file-script.ts'
import { timeoutMs, tooSlow } from './list.ts'
import { type DisplayPath, locate, prefixOf, show } from './location.ts'
import { readRecords } from './records.ts'

/** Minimum time between the starts of two listings. */
const intervalMs = 250
/** Minimum pause after a listing, as a multiple of the time that the listing took. */
const pauseFactor = 3
/** Maximum output per listing. It exceeds the limit for names and times, because paths are printed twice. */
const maxListingBytes = 4 * limits.listed.bytes
/** Memory overhead of an entry, in addition to its name and times. */
const entryOverheadBytes = 100

/**
 * Lists the path once, and again for each line on stdin. If the checksum of the entries has changed, prints
 * the entries and a record `listed`, otherwise only a record `same`.
 * The entries are read twice, for the checksum and for printing. If an entry changes in between, its new
 * state is printed, and the next checksum differs as well. `head` stops `find` in a directory that exceeds
 * the limits. Temporary files of writes (place.ts) are skipped.
 */
const watchScript = `${probes}
f=$1 format=$2 depth=$3 end=$4 last=none
list() (
  if [ ! -d "$f" ]; then exec stat -c "$format" "$f"; fi
  if ! cd "$f" 2>/dev/null || [ ! -r . ]; then
    if [ ! -d "$f" ]; then missing "$f"; fi
    exit ${exits.permissionDenied}
  fi
  find . -mindepth 1 -maxdepth "$depth" -name '.sandlot-*' -prune -o -print0 2>/dev/null |
    head -c ${limits.listed.bytes} | xargs -0 stat -c "$format" 2>/dev/null
  exit 0
)
while :; do
  if [ ! -e "$f" ] && [ ! -L "$f" ]; then missing "$f"; fi
  sum=$(list 2>/dev/null | sha256sum) state=same
  if [ "$sum" != "$last" ]; then
    list || exit
    last=$sum state=listed
  fi
  printf '%s%s\\n' "$state" "$end"
  read -r _ || exit 0
done`

const countWatch = limitOpen(
  limits.watches,
  `This sandbox already has ${limits.watches} watches. Close one of them, or watch a common parent directory with a greater depth.`,
)

export const watchFiles: StreamHandler<'watchFiles', SandboxContext> = async (args, worker, wire) => {
  const { response, signal, draining } = wire
  const release = countWatch(args.sandboxId)
  const watch = new Watch(args, wire)
  const { format, end } = watch.format
  try {
    await runFileScript(worker, args, signal, {
      text: watchScript,
      args: [locate(args).word, format, String(args.depth ?? 1), end],
      stdin: watch.begin,
      maxBytes: Number.POSITIVE_INFINITY,
      onStdout: watch.take,
      enough: AbortSignal.any([watch.failed, draining]),
      timeoutMs: streamMs,
    })
    throw watch.failed.reason ?? interrupted()
  } catch (error) {
    if (signal.aborted || !response.headersSent) throw error
    await watch.end(await explain(worker, args, error))
  } finally {
    watch.close()
    release()
  }
}

const interrupted = () => unavailable(watchInterrupted.detail)

/**
 * Returns the problem to report to the client of a failed watch.
 * @throws {unknown} an error that is not a {@link Problem}
 */
async function explain(worker: SandboxContext, args: WatchArgs, error: unknown): Promise<Problem> {
  if (!(error instanceof Problem)) throw error
  if (error.code !== 'unavailable') return error
  const now = await enter(worker, args).catch((reason) => reason)
  return now instanceof Problem ? now : interrupted()
}

type WatchArgs = Streams['watchFiles']['args']

/**
 * A listing of the watched path: the attributes of each entry as one string, by path. The strings are decoded
 * as Latin-1, in which each byte is one character, because paths may be invalid UTF-8.
 */
interface Listing {
  attributes: Map<string, string>
  bytes: number
}

const newListing = (): Listing => ({ attributes: new Map(), bytes: 0 })

const memoryOf = ({ attributes, bytes }: Listing): number => bytes + attributes.size * entryOverheadBytes

class Watch {
  readonly format = entryFormat(' %z')
  private readonly stop = new AbortController()
  /** Aborts with a {@link Problem} if the watch fails. */
  readonly failed = this.stop.signal
  private readonly args: WatchArgs
  private readonly wire: Wire
  private readonly prefix: Buffer
  private readonly read: (chunk: Buffer) => Promise<void>
  private stdin: Writable | undefined
  private known: Listing | undefined
  private next = newListing()
  private nextState: 'listed' | 'same' | undefined
  private received = 0
  private askedAt = 0
  private timer: NodeJS.Timeout | undefined
  private stopKeepAlive = () => {}
  private text = ''
  private eventCount = 0

  constructor(args: WatchArgs, wire: Wire) {
    this.args = args
    this.wire = wire
    this.prefix = prefixOf(args)
    const { delimiter } = this.format
    this.read = readRecords(args.accountId, { delimiter, onRecord: (record) => this.takeRecord(record) })
  }

  begin = (stdin: Writable): void => {
    this.stdin = stdin
    this.awaitListing()
  }

  take = async (chunk: Buffer): Promise<void> => {
    if (this.failed.aborted) return
    // A slow client may delay the rest of this function.
    clearTimeout(this.timer)
    this.received += chunk.length
    if (this.received > maxListingBytes) this.stop.abort(tooLarge())
    else await this.read(chunk)
    if (this.failed.aborted) return
    if (this.nextState) {
      await this.finishListing()
    } else {
      await this.flush()
      this.limitTime()
    }
  }

  async end({ code, message }: Problem): Promise<void> {
    if (code === 'file_not_found') await this.sendRemoved(newListing())
    this.push('end', { code, detail: message })
    await this.flush()
  }

  close(): void {
    this.stop.abort()
    clearTimeout(this.timer)
    this.stopKeepAlive()
  }

  private awaitListing(): void {
    this.askedAt = performance.now()
    this.received = 0
    this.limitTime()
  }

  private limitTime(): void {
    clearTimeout(this.timer)
    if (this.failed.aborted) return
    this.timer = setTimeout(() => this.stop.abort(tooSlow('Watch a smaller directory.')), timeoutMs)
  }

  private takeRecord(record: Buffer): void {
    if (this.nextState || this.failed.aborted) return
    const text = record.length <= 'listed'.length ? record.toString('latin1') : ''
    if (text === 'listed' || text === 'same') this.nextState = text
    else this.takeEntry(this.format.split(record))
  }

  private takeEntry(fields: Buffer[]): void {
    const [given, , , path] = fields
    if (!given || !path) return
    const name = path.toString('latin1')
    const { next, known } = this
    if (next.attributes.has(name)) return
    const attributes = attributesOf(given.toString('latin1'))
    const before = known?.attributes.get(name)
    if (before !== attributes) {
      const found = readEntry(fields)
      if (!found) return
      const event = before === undefined ? 'created' : 'changed'
      if (known) this.push(event, { ...this.show(name), ...found.entry })
    }
    this.add(name, attributes)
  }

  private add(name: string, attributes: string): void {
    const { next } = this
    const bytes = name.length + attributes.length
    const isTooLarge =
      next.attributes.size >= limits.listed.entries || next.bytes + bytes > limits.listed.bytes
    try {
      if (isTooLarge) throw tooLarge()
      this.wire.held.add(bytes + entryOverheadBytes)
      next.attributes.set(name, attributes)
      next.bytes += bytes
    } catch (error) {
      this.stop.abort(error)
    }
  }

  private async finishListing(): Promise<void> {
    const tookMs = performance.now() - this.askedAt
    const { known, next, nextState } = this
    this.nextState = undefined
    if (!known) this.start(next)
    else if (nextState === 'listed') await this.sendRemoved(next)
    if (!known || nextState === 'listed') {
      if (known) this.wire.held.give(memoryOf(known))
      this.known = next
      this.next = newListing()
    }
    await this.flush()
    if (this.failed.aborted) return
    const pauseMs = Math.max(intervalMs - tookMs, pauseFactor * tookMs)
    this.timer = setTimeout(() => {
      this.awaitListing()
      this.stdin?.write('\n')
    }, pauseMs)
  }

  private start({ attributes }: Listing): void {
    const { response } = this.wire
    response.writeHead(200, eventHeaders)
    this.stopKeepAlive = keepAlive(response)
    this.push('start', { ...locate(this.args).shown, entries: attributes.size })
  }

  private async sendRemoved(now: Listing): Promise<void> {
    for (const name of this.known?.attributes.keys() ?? []) {
      if (now.attributes.has(name)) continue
      this.push('removed', this.show(name))
      if (this.text.length > maxBatchLength) await this.flush()
    }
  }

  private show(name: string): DisplayPath {
    const isBelow = name.startsWith('./')
    return isBelow
      ? show(Buffer.concat([this.prefix, Buffer.from(name.slice(2), 'latin1')]))
      : locate(this.args).shown
  }

  private push<Name extends WatchEvent['event']>(name: Name, data: DataOf<Name>): void {
    this.eventCount++
    this.text += formatEvent(String(this.eventCount), name, data)
  }

  private async flush(): Promise<void> {
    const { text } = this
    this.text = ''
    if (text !== '') await write(this.wire.response, text)
  }
}

type DataOf<Name> = Extract<WatchEvent, { event: Name }>['data']

/**
 * Returns the attributes to compare. Omits a directory's size and times, because they change with its
 * entries, whose changes are reported separately.
 */
function attributesOf(printed: string): string {
  const [mode = '', , , uid, gid] = printed.split(' ', 5)
  return /^4.{3}$/.test(mode) ? `${mode} ${uid} ${gid}` : printed
}

const tooLarge = () =>
  new Problem(
    'invalid_request',
    `A watch is limited to ${limits.listed.entries} entries and ${limits.listed.bytes / 2 ** 20} MiB of names and timestamps. Watch a smaller directory, or use a smaller depth.`,
  )
