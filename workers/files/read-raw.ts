import type { Writable } from 'node:stream'
import { Problem } from '../../shared/platform/problem.ts'
import { type ByteRange, rangeOf, write } from '../sandbox/bytes.ts'
import type { StreamHandler } from '../sandbox/call.ts'
import { probes, runFileScript } from './file-script.ts'
import { locate } from './location.ts'

/** Prints the size, waits for a range of bytes, and prints that. If nothing comes, it does nothing. */
const script = `${probes}
f=$1
must_be_file "$f"
size=$(stat -L -c %s "$f" 2>/dev/null) || size=0
if [ "$size" -eq 0 ]; then size=$(wc -c <"$f") || exit 1; fi
printf '%s\\n' "$size"
read -r first count || exit 0
if [ "$first" -eq 1 ] && [ "$count" -eq "$size" ]; then exec cat "$f"; fi
tail -c "+$first" "$f" | head -c "$count"`

/** Milliseconds. No sandbox lives longer. */
const timeoutMs = 24 * 60 * 60 * 1000

/** Streams the bytes of a file, or a range of them, as fast as the client takes them. */
export const readRaw: StreamHandler<'readRaw'> = async (args, worker, { response, signal }) => {
  const enough = new AbortController()
  const state: { stdin?: Writable; left?: number; error?: unknown } = {}
  let header = ''

  const begin = (size: number) => {
    const range = args.range === undefined ? { from: 0, to: size } : rangeOf(args.range, 0, size)
    state.left = range.to - range.from
    response.writeHead(args.range === undefined ? 200 : 206, headersOf(range, size, args.range !== undefined))
    state.stdin?.write(`${range.from + 1} ${state.left}\n`)
  }
  const onStdout = async (chunk: Buffer) => {
    if (state.error) return
    let bytes = chunk
    if (state.left === undefined) {
      const end = chunk.indexOf('\n')
      header += chunk.toString('latin1', 0, end === -1 ? chunk.length : end)
      if (end === -1 && header.length < 100) return
      try {
        if (!/^\d{1,15}$/.test(header))
          throw new Problem('internal_error', 'The file script printed no size.')
        begin(Number(header))
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
    // The file grew meanwhile. What was promised has been sent.
    if (part.length < bytes.length) enough.abort()
  }

  await runFileScript(
    worker,
    args,
    {
      text: script,
      args: [locate(args).word],
      stdin: (stdin) => {
        state.stdin = stdin
      },
      mostBytes: Number.POSITIVE_INFINITY,
      onStdout,
      enough: enough.signal,
      timeoutMs,
    },
    signal,
  )
  if (state.error) throw state.error
  // The file shrank, or its sandbox ended. The client must see that the answer is not whole.
  if (state.left !== 0) response.destroy()
}

const headersOf = ({ from, to }: ByteRange, size: number, isPart: boolean) => ({
  'content-type': 'application/octet-stream',
  'cache-control': 'no-store',
  'accept-ranges': 'bytes',
  'content-length': String(to - from),
  ...(isPart ? { 'content-range': `bytes ${from}-${to - 1}/${size}` } : {}),
})
