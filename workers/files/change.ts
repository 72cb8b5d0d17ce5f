import type { SandboxContext } from '../sandbox/enter.ts'
import type { Path } from '../shell/script.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import { locate } from './location.ts'
import { writing } from './place.ts'
import { limitPerSandbox } from './sandbox-concurrency.ts'

/**
 * Shell functions that move or remove a path. Mounts are compared by their IDs in `/proc`, because
 * directories on different mounts can have the same device number.
 */
const moving = `
is_there() { [ -e "$1" ] || [ -L "$1" ]; }
mount_of() { { stat -L -c %d "$1"; grep mnt_id: /proc/self/fdinfo/0 <"$1"; } 2>/dev/null; }
must_not_be_mount() {
  if [ "$1" = / ]; then exit ${exits.mountPoint}; fi
  up=\${1%/*}/
  if [ -L "$1" ] || [ ! -d "$1" ] || [ ! -r "$1" ] || [ ! -r "$up" ]; then return; fi
  if [ "$(mount_of "$1")" != "$(mount_of "$up")" ]; then exit ${exits.mountPoint}; fi
}
`

/** Creates a directory, or prints `x` if it already exists. */
const makeScript = `
f=$1 mode=$2 exist_ok=$3
umask 022
accept_existing() {
  if [ ! -d "$f" ]; then return; fi
  if [ -z "$exist_ok" ]; then exit ${exits.directoryExists}; fi
  echo x
  exit
}
accept_existing
[ -d "\${f%/*}/" ] || mkdir -p "\${f%/*}/" || exit 1
if mkdir -m "$mode" "$f"; then exit; fi
accept_existing
if [ -e "$f" ] || [ -L "$f" ]; then exit ${exits.fileInTheWay}; fi
exit 1`

export const makeDirectory = limitPerSandbox<'makeDirectory'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  const words = [word, args.mode ?? '755', args.exist_ok ? 'yes' : '']
  const existed = await run(worker, args, signal, { text: makeScript, args: words })
  return { ...shown, created: !existed }
})

/**
 * Moves a path. Between mounts, where the kernel cannot rename, copies the path to a temporary name next to
 * the target, then renames the copy.
 */
const moveScript = `${probes}${writing}${moving}
from=$1 f=$2 overwrite=$3
if [ "$from" = "$f" ]; then exit ${exits.ontoItself}; fi
if ! is_there "$from"; then missing "$from"; fi
must_not_be_mount "$from"
if [ -d "$from" ] && [ ! -L "$from" ]; then case "$f" in "\${from%/}"/*) exit ${exits.ontoItself};; esac; fi
umask 022
hold_lock
if ! is_there "$from"; then missing "$from"; fi
must_be_replaceable
to=\${f%/*}/
[ -d "$to" ] || mkdir -p "$to" || exit 1
rename() {
  if mv -f -T "$1" "$f" 2>/dev/null; then return; fi
  must_be_replaceable
  if ! is_there "$from"; then missing "$from"; fi
  mv -f "$1" "$f"
}
if [ "$(mount_of "\${from%/*}/")" = "$(mount_of "$to")" ]; then rename "$from"; exit; fi
probe=\${from%/*}/.sandlot-$$.tmp
mkdir "$probe" && rmdir "$probe" || exit 1
t=$to.sandlot-$$.tmp
cp -a "$from" "$t" && rename "$t" && rm -rf "$from"`

export const moveFile = limitPerSandbox<'moveFile'>(async (args, worker, { signal }) => {
  const to = locate({ path: args.to, path_base64: args.to_base64 })
  const words = [locate(args).word, to.word, args.overwrite ? 'yes' : 'no']
  await run(worker, args, signal, { text: moveScript, args: words })
  return to.shown
})

/**
 * Removes a path, or prints `x` if nothing exists there. Holds the sandbox's write lock (place.ts) while it
 * removes a file, but not while it removes a directory, because that can take a long time.
 */
const removeScript = `${probes}${writing}${moving}
f=$1 recursive=$2 missing_ok=$3
gone() {
  (missing "$f")
  status=$?
  if [ "$missing_ok" ] && [ "$status" = ${exits.notFound} ]; then echo x; exit 0; fi
  exit "$status"
}
is_there "$f" || gone
must_not_be_mount "$f"
if [ -d "$f" ] && [ ! -L "$f" ]; then
  if [ -z "$recursive" ]; then exit ${exits.needsRecursive}; fi
  rm -rf "$f"
  exit
fi
hold_lock
is_there "$f" || gone
rm -f "$f"`

export const removeFile = limitPerSandbox<'removeFile'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  const words = [word, args.recursive ? 'yes' : '', args.missing_ok ? 'yes' : '']
  const wasMissing = await run(worker, args, signal, { text: removeScript, args: words })
  return { ...shown, removed: !wasMissing }
})

const modeScript = `${probes}${writing}
f=$1
if [ ! -e "$f" ]; then missing "$f"; fi
hold_lock
chmod "$2" "$f"`

export const changeFileMode = limitPerSandbox<'changeFileMode'>(async (args, worker, { signal }) => {
  const { word, shown } = locate(args)
  // With fewer than five digits, GNU chmod keeps the setuid and setgid bits of a directory.
  await run(worker, args, signal, { text: modeScript, args: [word, args.mode.padStart(5, '0')] })
  return { ...shown, mode: args.mode }
})

/** Runs a script and reports whether it printed anything. @throws {Problem} */
async function run(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
  signal: AbortSignal,
  script: { text: string; args: (string | Path)[] },
): Promise<boolean> {
  let printed = false
  const onStdout = (chunk: Buffer) => {
    printed ||= chunk.length > 0
  }
  await runFileScript(worker, call, signal, { ...script, onStdout })
  return printed
}
