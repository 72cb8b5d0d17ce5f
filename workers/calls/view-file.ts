import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/problem.ts'
import { wholeCharacters } from '../shell/output.ts'
import { absolute } from '../shell/script.ts'
import type { Call } from './call.ts'
import { exits, runFileScript } from './file-script.ts'

/** Prints `size lines sha256` and a newline, then at most one byte more than is shown. */
const script = `
f=$1 from=$2 count=$3 most=$4
if [ -d "$f" ]; then exit ${exits.isDirectory}; fi
if [ ! -e "$f" ]; then
  case $(ls -d "$f" 2>&1) in *'Permission denied'*) exit ${exits.permissionDenied};; esac
  exit ${exits.notFound}
fi
if [ ! -f "$f" ]; then exit ${exits.notRegular}; fi
if [ ! -r "$f" ]; then exit ${exits.permissionDenied}; fi
size=$(wc -c <"$f") && lines=$(wc -l <"$f") && sum=$(sha256sum <"$f") || exit 1
if [ -n "$(tail -c 1 "$f" | tr '\\0' x)" ]; then lines=$((lines + 1)); fi
printf '%s %s %s\\n' $size $lines "\${sum%% *}"
if [ "$count" = all ]; then tail -n "+$from" "$f" | head -c "$most"
else tail -n "+$from" "$f" | head -n "$count" | head -c "$most"
fi`

const headerBytes = 128

/** Reads a file, or the lines asked for. */
export const viewFile: Call<'viewFile'> = async (args, worker, signal) => {
  const path = absolute(args.path)
  const from = args.startLine ?? 1
  const count = args.endLine === undefined ? 'all' : String(args.endLine - from + 1)
  const most = limits.viewBytes + 1
  const output = await runFileScript(
    worker,
    args,
    { text: script, args: [{ path }, String(from), count, String(most)], outputLimit: most + headerBytes },
    signal,
  )
  const headerEnd = output.indexOf('\n')
  const [size, lines, sha256] = output.toString('latin1', 0, headerEnd).split(' ')
  if (headerEnd === -1 || !sha256) throw new Problem('internal_error', 'The file script printed no header.')
  const all = output.subarray(headerEnd + 1)
  const truncated = all.length > limits.viewBytes
  const shown = truncated ? all.subarray(0, limits.viewBytes) : all
  const text = asText(truncated ? wholeCharacters(shown, 'end') : shown)
  return {
    path,
    size: Number(size),
    content: text ?? shown.toString('base64'),
    encoding: text === undefined ? 'base64' : 'utf-8',
    total_lines: text === undefined ? null : Number(lines),
    sha256,
    truncated,
  }
}

/** @returns undefined when the bytes are not UTF-8, or hold a NUL as no text does */
function asText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
