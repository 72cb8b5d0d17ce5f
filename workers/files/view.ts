import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../sandbox/call.ts'
import { redactBytes } from '../secrets/index.ts'
import { wholeCharacters } from '../shell/output.ts'
import { gather, probes, runFileScript } from './file-script.ts'
import { locate } from './location.ts'

/** Prints `size lines sha256` and a newline, then at most one byte more than is shown. */
const script = `${probes}
f=$1 from=$2 count=$3 most=$4
must_be_file "$f"
size=$(wc -c <"$f") && lines=$(wc -l <"$f") && sum=$(sha256sum <"$f") || exit 1
if [ -n "$(tail -c 1 "$f" | tr '\\0' x)" ]; then lines=$((lines + 1)); fi
printf '%s %s %s\\n' $size $lines "\${sum%% *}"
if [ "$count" = all ]; then tail -n "+$from" "$f" | head -c "$most"
else tail -n "+$from" "$f" | head -n "$count" | head -c "$most"
fi`

const headerBytes = 128

/** Reads a file, or the requested lines of it. */
export const viewFile: CallHandler<'viewFile'> = async (args, worker, signal) => {
  const { word, shown: located } = locate(args)
  const from = args.startLine ?? 1
  const count = args.endLine === undefined ? 'all' : String(args.endLine - from + 1)
  const most = limits.viewBytes + 1
  const printed = gather(most + headerBytes)
  await runFileScript(
    worker,
    args,
    {
      text: script,
      args: [word, String(from), count, String(most)],
      mostBytes: most + headerBytes,
      onStdout: printed.onStdout,
    },
    signal,
  )
  const output = printed.bytes()
  const headerEnd = output.indexOf('\n')
  const header = /^(\d+) (\d+) ([0-9a-f]{64})$/.exec(output.toString('latin1', 0, Math.max(0, headerEnd)))
  if (!header) throw new Problem('internal_error', 'The file script printed no header.')
  const [, size, lines, sha256 = ''] = header
  const all = output.subarray(headerEnd + 1)
  const truncated = all.length > limits.viewBytes
  const within = truncated ? all.subarray(0, limits.viewBytes) : all
  const sandbox = { id: args.sandboxId, account_id: args.accountId }
  const byLine = from > 1 || count !== 'all'
  const shown =
    args.reveal === 'true' ? within : await redactBytes(worker, sandbox, within, { cut: truncated, byLine })
  const text = asText(truncated ? wholeCharacters(shown, 'end') : shown)
  return {
    ...located,
    size: Number(size),
    content: text ?? shown.toString('base64'),
    encoding: text === undefined ? 'base64' : 'utf-8',
    total_lines: text === undefined ? null : Number(lines),
    sha256,
    truncated,
  }
}

/** @returns undefined when the bytes are not UTF-8, or hold a NUL, which no text does */
function asText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
