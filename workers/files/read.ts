import { isUtf8 } from 'node:buffer'
import type { Writable } from 'node:stream'
import { type Tags, tagOf } from '../../shared/contract/conditions.ts'
import { limits } from '../../shared/contract/limits.ts'
import { GrowingBuffer } from '../../shared/lib/growing-buffer.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { ReadConditions } from '../../shared/rpc/calls.ts'
import { headersOf, rangeOf, write } from '../rpc/bytes.ts'
import type { StreamHandler } from '../rpc/call.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import { secretsFor } from '../secrets/index.ts'
import { buildPatterns, type SecretPatterns } from '../secrets/patterns.ts'
import { Redactor } from '../secrets/redactor.ts'
import { wholeCharacters } from '../shell/output.ts'
import { probes, runFileScript, streamMs } from './file-script.ts'
import { locate } from './location.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/** Opens the file once, so that its size, hash and content are consistent even if the path is replaced. */
const openOnce = 'exec 7<"$f"; f=/proc/self/fd/7'

/**
 * Prints `SIZE LINES SHA256` on the first line, then the requested lines, up to one byte more than a response
 * may contain. The extra byte shows that the content is truncated.
 */
export const viewScript = `${probes}
f=$1 from=$2 count=$3 most=$4
must_be_file "$f"
${openOnce}
size=$(wc -c <"$f") && lines=$(wc -l <"$f") && sum=$(sha256sum <"$f") || exit 1
if [ -n "$(tail -c 1 "$f" | tr '\\0' x)" ]; then lines=$((lines + 1)); fi
printf '%s %s %s\\n' $size $lines "\${sum%% *}"
if [ "$count" = all ]; then tail -n "+$from" "$f" | head -c "$most"
else tail -n "+$from" "$f" | head -n "$count" | head -c "$most"
fi`

const headerBytes = 128

export const viewFile = limitPerSandbox<'viewFile'>(async (args, worker, { signal }) => {
  const { word, shown: located } = locate(args)
  const from = args.startLine ?? 1
  const count = countOf(from, args.endLine)
  const maxBytes = limits.viewBytes + 1
  const printed = new GrowingBuffer(maxBytes + headerBytes)
  await runFileScript(worker, args, signal, {
    text: viewScript,
    args: [word, String(from), count, String(maxBytes)],
    maxBytes: maxBytes + headerBytes,
    onStdout: (chunk) => void printed.push(chunk),
  })
  const output = printed.bytes
  const headerEnd = output.indexOf('\n')
  const header = /^(\d+) (\d+) ([0-9a-f]{64})$/.exec(output.toString('latin1', 0, Math.max(0, headerEnd)))
  if (!header)
    throw new Problem('internal_error', 'The internal script that reads files printed no valid header.')
  const [, size, lines, sha256 = ''] = header
  const all = output.subarray(headerEnd + 1)
  const truncated = all.length > limits.viewBytes
  const within = truncated ? all.subarray(0, limits.viewBytes) : all
  const redactor = new Redactor(await patternsFor(worker, args, from, count))
  const redacted = redactor.push(within)
  // If the content is truncated, its last bytes could be the start of a secret.
  const shown = truncated ? redacted : Buffer.concat([redacted, redactor.flush()])
  const text = asText(truncated ? wholeCharacters(shown) : shown)
  return {
    ...located,
    size: Number(size),
    content: text ?? shown.toString('base64'),
    encoding: text === undefined ? 'base64' : 'utf-8',
    total_lines: text === undefined ? null : Number(lines),
    sha256,
    truncated,
  }
})

const countOf = (from: number, to: number | undefined): string =>
  to === undefined ? 'all' : String(Math.max(0, to - from + 1))

async function patternsFor(
  worker: SandboxContext,
  { sandboxId, accountId, reveal }: { sandboxId: string; accountId: string; reveal?: string | undefined },
  from: number,
  count: string,
): Promise<SecretPatterns | undefined> {
  if (reveal === 'true') return undefined
  const secrets = await secretsFor(worker, { id: sandboxId, account_id: accountId })
  // Some lines of a file may begin or end within a secret.
  return await buildPatterns(secrets, { byLine: from > 1 || count !== 'all' })
}

function asText(bytes: Buffer): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : undefined
}

/**
 * Maximum size of a file whose hash (the ETag) is always computed. For a larger file, it is computed only if
 * the request is a HEAD request or has a conditional header.
 */
const taggedBytes = 1024 * 1024

/**
 * Prints the size, mode and SHA-256 hash of a file. Then reads a range from stdin and prints that range of
 * the file, or exits on EOF.
 */
export const rawScript = `${probes}
f=$1 tagged=$2
must_be_file "$f"
${openOnce}
size=$(stat -L -c %s "$f" 2>/dev/null) || size=0
if [ "$size" -eq 0 ]; then size=$(wc -c <"$f") || exit 1; fi
sum=
if [ "$tagged" = yes ] || [ "$size" -le ${taggedBytes} ]; then sum=$(sha256sum <"$f") || exit 1; fi
mode=$(stat -L -c %a "$f" 2>/dev/null) || mode=644
printf '%s %s %s\\n' "$size" "$mode" "\${sum%% *}"
read -r first count || exit 0
if [ "$first" -eq 1 ] && [ "$count" -eq "$size" ]; then exec cat "$f"; fi
tail -c "+$first" "$f" | head -c "$count"`

/** Streams a file or a range of it. A slow client slows down the stream. */
export const readRaw: StreamHandler<'readRaw', SandboxContext> = async (
  args,
  worker,
  { response, signal },
) => {
  const enough = new AbortController()
  const state: { stdin?: Writable; left?: number; error?: unknown } = {}
  let header = ''

  const begin = (size: number, mode: string, sha256: string) => {
    const { isSame, range } = evaluateConditions(args, size, sha256)
    const shown = range ?? { from: 0, to: isSame ? 0 : size }
    state.left = shown.to - shown.from
    const facts = { 'x-file-mode': mode, ...(sha256 !== '' && { etag: tagOf(sha256) }) }
    const ofBytes = headersOf(shown, range !== undefined, size)
    if (isSame) response.writeHead(304, { ...facts, 'cache-control': 'no-store' })
    else response.writeHead(range ? 206 : 200, { ...facts, ...shownHeaders, ...ofBytes })
    if (isSame) state.stdin?.end()
    else state.stdin?.write(`${shown.from + 1} ${state.left}\n`)
  }
  const onStdout = async (chunk: Buffer) => {
    if (state.error) return
    let bytes = chunk
    if (state.left === undefined) {
      const end = chunk.indexOf('\n')
      header += chunk.toString('latin1', 0, end === -1 ? chunk.length : end)
      if (end === -1 && header.length < 100) return
      try {
        const [, size, mode, sha256] = /^(\d{1,15}) ([0-7]{1,4}) ([0-9a-f]{64})?$/.exec(header) ?? []
        if (size === undefined || mode === undefined)
          throw new Problem('internal_error', 'The internal script that reads files printed no size.')
        begin(Number(size), mode, sha256 ?? '')
      } catch (error) {
        state.error = error
        state.stdin?.end()
        return
      }
      bytes = chunk.subarray(end + 1)
    }
    const part = bytes.subarray(0, state.left)
    state.left = (state.left ?? 0) - part.length
    if (part.length > 0) await write(response, part)
    // The file has grown, and all bytes up to Content-Length have been sent.
    if (part.length < bytes.length) enough.abort()
  }

  await runFileScript(worker, args, signal, {
    text: rawScript,
    args: [locate(args).word, args.isTagged ? 'yes' : 'no'],
    stdin: (stdin) => {
      state.stdin = stdin
    },
    maxBytes: Number.POSITIVE_INFINITY,
    onStdout,
    enough: enough.signal,
    timeoutMs: streamMs,
  })
  if (state.error) throw state.error
  // The file has shrunk, or its sandbox was destroyed. Closing the connection shows the client that the
  // response is truncated.
  if (state.left !== 0) response.destroy()
}

/**
 * Evaluates the conditional and range headers (RFC 9110). `isSame` means that the client already has this
 * version.
 */
function evaluateConditions(
  { range, ifRange, ifMatch, ifNoneMatch }: ReadConditions,
  size: number,
  sha256: string,
) {
  const names = (tags: Tags) => tags === '*' || tags.includes(sha256)
  if (ifMatch !== undefined && !names(ifMatch)) {
    throw new Problem('precondition_failed', 'The file does not match If-Match. Read the file again.', {
      members: { sha256 },
    })
  }
  if (ifNoneMatch !== undefined && names(ifNoneMatch)) return { isSame: true }
  const counts = ifRange === undefined || ifRange === tagOf(sha256)
  return { isSame: false, range: counts ? rangeOf(range, 0, size) : undefined }
}

/** Prints a newline if the file is readable, so the worker sends status 200, then the requested lines. */
const shownScript = `${probes}
f=$1 from=$2 count=$3
must_be_file "$f"
echo
if [ "$count" != all ]; then tail -n "+$from" "$f" | head -n "$count"
else exec tail -n "+$from" "$f"
fi`

export const readShown: StreamHandler<'readShown', SandboxContext> = async (
  args,
  worker,
  { response, signal, held },
) => {
  const { startLine: from = 1, endLine } = args
  const count = countOf(from, endLine)
  const patterns = await patternsFor(worker, args, from, count)
  if (patterns) held.add(patterns.automaton.bytes)
  try {
    const redactor = new Redactor(patterns)
    const onStdout = async (chunk: Buffer) => {
      const bytes = response.headersSent ? chunk : chunk.subarray(1)
      if (!response.headersSent) response.writeHead(200, shownHeaders)
      const shown = redactor.push(bytes)
      if (shown.length > 0) await write(response, shown)
    }
    await runFileScript(worker, args, signal, {
      text: shownScript,
      args: [locate(args).word, String(from), count],
      maxBytes: Number.POSITIVE_INFINITY,
      onStdout,
      timeoutMs: streamMs,
    })
    await write(response, redactor.flush())
  } catch (error) {
    if (!response.headersSent) throw error
    // Closing the connection tells the client that the response is truncated.
    response.destroy()
  }
}

const shownHeaders = { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' }
