/** How a file is put in place: readers see the old file or the new one, never half of one. */
import type { Writable } from 'node:stream'
import type { WorkerContext } from '../context.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import type { Location } from './location.ts'

/**
 * Shell functions. A link is followed, so its target is replaced. The content is written beside the target, checked
 * against its sha256, then renamed or linked into place.
 */
export const writing = `
follow() {
  f=$1
  if [ -L "$f" ]; then
    to=$(readlink -f "$f" 2>/dev/null && printf x) && f=\${to%?x}
  fi
}
hash_of() {
  sum=$(sha256sum <"$1") || exit 1
  sum=\${sum%% *}
}
be_unchanged() {
  [ -f "$f" ] || exit ${exits.changed}
  hash_of "$f"
  [ "$sum" = "$1" ] || exit ${exits.changed}
}
receive() {
  t=\${f%/*}/.sandlot-$$.tmp
  trap 'rm -f "$t"' EXIT
  trap 'exit 143' HUP INT TERM
  umask 022
  cat >"$t" || exit 1
}
be_whole() {
  hash_of "$t"
  [ "$sum" = "$1" ] || exit ${exits.cutShort}
}
set_mode() {
  mode=$1
  if [ "$mode" = keep ]; then mode=$(stat -L -c %a "$f" 2>/dev/null) || mode=644; fi
  chmod "$mode" "$t" || exit 1
}
`

/** A stream of unknown length has its sha256 at its end, so one that broke off shows. */
const script = `${probes}${writing}
wanted=$2 overwrite=$3 match=$4 whole=$5
f=$1
if [ "$overwrite" = yes ]; then follow "$1"; fi
if [ -d "$f" ]; then exit ${exits.isDirectory}; fi
if [ -e "$f" ] && [ ! -f "$f" ]; then exit ${exits.notRegular}; fi
if [ "$overwrite" = no ] && { [ -e "$f" ] || [ -L "$f" ]; }; then exit ${exits.exists}; fi
if [ -n "$match" ]; then be_unchanged "$match"; fi
umask 022
[ -d "\${f%/*}/" ] || mkdir -p "\${f%/*}/" || exit 1
receive
if [ -z "$whole" ]; then
  size=$(($(wc -c <"$t") - 64))
  if [ "$size" -lt 0 ]; then exit ${exits.cutShort}; fi
  whole=$(tail -c 64 "$t" | tr -dc 0-9a-f)
  dd if=/dev/null of="$t" bs=1 seek="$size" 2>/dev/null || exit 1
fi
be_whole "$whole"
set_mode "$wanted"
if [ -n "$match" ]; then be_unchanged "$match"; fi
if [ "$overwrite" = yes ]; then mv -f "$t" "$f"; exit; fi
if ln "$t" "$f" 2>/dev/null; then exit 0; fi
if [ -e "$f" ] || [ -L "$f" ]; then exit ${exits.exists}; fi
ln "$t" "$f"`

export interface FileWrite {
  location: Location
  /** Octal. By default that of the file that is replaced, or 644. */
  mode?: string | undefined
  overwrite: boolean
  /** sha256 of the file that is to be replaced. */
  ifMatch?: string | undefined
  /** The content with its sha256; or a function that streams it, and then its sha256 in hexadecimal. */
  content: { bytes: Buffer; sha256: string } | ((stdin: Writable) => void)
  timeoutMs?: number
}

/** Writes a file whole, or not at all, and makes missing folders. @throws {Problem} */
export async function writeWhole(
  worker: WorkerContext,
  call: { sandboxId: string; accountId: string },
  signal: AbortSignal,
  { location, mode = 'keep', overwrite, ifMatch = '', content, ...more }: FileWrite,
): Promise<void> {
  const [stdin, sha256] = typeof content === 'function' ? [content, ''] : [content.bytes, content.sha256]
  const args = [location.word, mode, overwrite ? 'yes' : 'no', ifMatch, sha256]
  await runFileScript(worker, call, signal, { text: script, args, stdin, ...more })
}
