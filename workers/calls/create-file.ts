import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { absolute } from '../shell/script.ts'
import type { Call } from './call.ts'
import { exits, runFileScript } from './file-script.ts'

/** Writes beside the target, then renames or links: readers see the old file or the new one, never half. */
const script = `
f=$1 d=$2 size=$3 mode=$4 overwrite=$5
if [ -d "$f" ]; then exit ${exits.isDirectory}; fi
if [ "$overwrite" = no ] && { [ -e "$f" ] || [ -L "$f" ]; }; then exit ${exits.exists}; fi
umask 022
mkdir -p "$d" || exit 1
t=$d/.sandlot-$$.tmp
trap 'rm -f "$t"' EXIT
cat >"$t" || exit 1
if [ "$(wc -c <"$t")" -ne "$size" ]; then exit ${exits.cutShort}; fi
if [ "$mode" = keep ]; then mode=$(stat -c %a "$f" 2>/dev/null) || mode=644; fi
chmod "$mode" "$t" || exit 1
if [ "$overwrite" = yes ]; then mv -f "$t" "$f"; exit; fi
if ln "$t" "$f" 2>/dev/null; then exit 0; fi
if [ -e "$f" ] || [ -L "$f" ]; then exit ${exits.exists}; fi
ln "$t" "$f"`

/** Writes a file whole, or not at all. */
export const createFile: Call<'createFile'> = async (args, worker, signal) => {
  const path = absolute(args.path)
  const content = Buffer.from(args.content, args.encoding === 'base64' ? 'base64' : 'utf8')
  await runFileScript(
    worker,
    args,
    {
      text: script,
      args: [
        path,
        posix.dirname(path),
        String(content.length),
        args.mode ?? 'keep',
        args.overwrite ? 'yes' : 'no',
      ],
      stdin: content,
      outputLimit: 0,
    },
    signal,
  )
  return { path, size: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}
