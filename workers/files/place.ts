/**
 * Replaces files atomically, so that readers see either the old file or the new one. A file is overwritten in
 * place only if it has several hard links or its directory does not allow new entries.
 */
import type { Writable } from 'node:stream'
import type { Tags } from '../../shared/contract/conditions.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import { exits, probes, runFileScript } from './file-script.ts'
import type { Location } from './location.ts'

/** Maximum number of attempts to acquire the lock, 50 ms apart. If all fail, the write fails. */
const maxLockAttempts = 600

/**
 * Shell functions that replace a file. The content is written next to the target, verified with its SHA-256
 * hash, then renamed or linked into place. Before a file is overwritten in place, it is copied, so that it
 * can be restored if the disk is full.
 * The final check of the target and the rename run under one per-sandbox lock, which also covers hard links
 * and writes by several workers. A file that is being overwritten in place may be read half-written, so a
 * write is rejected as outdated only after the file has been checked again under the lock.
 * The lock is a `flock` on the workspace, which the kernel releases when the shell exits. In images without
 * `flock`, the lock is a symlink to the shell's command line in `/proc`, which shows whether that shell is
 * still running. Some versions of `flock` have no timeout option, so the script polls.
 * The client's commands do not acquire the lock, so they may create, remove or replace a file between any two
 * steps of a script. The result must nevertheless be the same as if that change had happened before or after
 * the script (`test/workers/file-steps.test.ts`), except that a change between the final check and the rename
 * may be lost.
 */
export const writing = `
follow() {
  f=$1
  if [ -L "$f" ]; then
    to=$(readlink -f "$f" 2>/dev/null && printf x) && f=\${to%?x}
  fi
}
hash_of() {
  sum=$(sha256sum <"$1") && sum=\${sum%% *}
}
be_unchanged() {
  [ -f "$f" ] || exit ${exits.changed}
  if [ "$1" = any ]; then return; fi
  if ! hash_of "$f"; then [ -f "$f" ] || exit ${exits.changed}; exit 1; fi
  case " $1 " in *" $sum "*) ;; *) exit ${exits.changed};; esac
}
be_unchanged_under_lock() (
  clean_up_at_exit
  take_lock
  be_unchanged "$1"
)
must_be_replaceable() {
  if [ -d "$f" ]; then exit ${exits.isDirectory}; fi
  must_be_no_device "$f"
  if [ -f "$f" ] || [ -L "$f" ]; then case $overwrite in no) exit ${exits.exists};; new) exit ${exits.notNew};; esac; fi
  if [ -f "$f" ]; then must_be_writable; fi
}
take_lock() {
  lock
  must_be_replaceable
}
hold_lock() {
  clean_up_at_exit
  lock
}
clean_up_at_exit() {
  link=/tmp/.sandlot-turn held= t=
  trap clean_up EXIT
  trap 'clean_up; exit 143' HUP INT TERM
}
clean_up() {
  # A signal to the process group would also kill \`rm\`.
  trap '' HUP INT TERM
  rm -rf $held \${t:+"$t" "$t.old"}
}
lock() {
  if command -v flock >/dev/null && [ -r "$HOME" ]; then exec 8<"$HOME"; lock=kernel; else lock=link; fi
  tries=0
  until lock_by_$lock; do
    if [ "$tries" -ge ${maxLockAttempts} ]; then exit ${exits.busy}; fi
    tries=$((tries + 1))
    sleep 0.05 2>/dev/null || sleep 1
  done
}
lock_by_kernel() { flock -n 8; }
lock_by_link() {
  if ln -s "/proc/$$/cmdline" "$link" 2>/dev/null; then held=$link; return; fi
  holder=$(readlink "$link") || return 1
  if ! grep -qs sandlot "$holder" && [ "$(readlink "$link")" = "$holder" ]; then rm -f "$link"; fi
  return 1
}
must_be_writable() {
  if [ -w "$f" ] || [ ! -e "$f" ]; then return; fi
  words=$(mkdir "\${f%/*}/.sandlot-$$.tmp" 2>&1) && rmdir "\${f%/*}/.sandlot-$$.tmp"
  case $words in *'Read-only file system') printf '%s\\n' "$words" >&2; exit 1;; esac
  exit ${exits.notWritable}
}
receive() {
  clean_up_at_exit
  t=\${f%/*}/.sandlot-$$.tmp
  if [ -n "$into" ] || { [ -e "$f" ] && [ ! -w "\${f%/*}/" ]; }; then t=/tmp/.sandlot-$$.tmp; fi
  # Other users must not read the content before it has its final mode.
  : >"$t" && chmod 600 "$t" && cat >"$t" || exit 1
}
be_whole() {
  hash_of "$t" || exit 1
  [ "$sum" = "$1" ] || exit ${exits.cutShort}
}
set_mode() {
  mode=$1
  if [ "$mode" = keep ]; then mode=$(stat -L -c %a "$f" 2>/dev/null) || mode=644; fi
  chmod "$mode" "$t" || exit 1
}
place_by() {
  if "$@" -T "$t" "$f" 2>/dev/null; then return; fi
  must_be_replaceable
  "$@" "$t" "$f" || { must_be_replaceable; return 1; }
  if [ -d "$f" ]; then rm -f "$f/\${t##*/}"; exit ${exits.isDirectory}; fi
}
put() {
  names=$(stat -c %h "$f" 2>/dev/null) || names=1
  if [ "$names" = 1 ] && [ "\${t%/*}" = "\${f%/*}" ] && place_by mv -f 2>/dev/null; then exit; fi
  if [ -e "$f" ]; then
    if write_over "$1"; then exit; fi
    must_be_replaceable
    if [ -e "$f" ]; then exit 1; fi
  fi
  place_by mv -f
  exit
}
write_over() {
  trap '' HUP INT TERM
  : >"$t.old" && chmod 600 "$t.old" && cat "$f" >"$t.old" || return
  if [ "$1" != keep ]; then before=$(stat -c %a "$f") && chmod "$before" "$f" || return; fi
  if write_through "$1" >"$f"; then return; fi
  if [ -f "$f" ]; then
    if [ "$1" != keep ]; then chmod u+w "$f"; fi
    cat "$t.old" >"$f"
    if [ "$1" != keep ]; then chmod "$before" "$f"; fi
  fi
  return 1
}
write_through() {
  if [ "$1" != keep ]; then chmod "$1" /proc/self/fd/1 || return; fi
  cat "$t"
}
`

/**
 * Writes a file from stdin. Streamed content ends with its SHA-256 hash, so that truncation is detected. A
 * pipe or device receives the content, unless the request has a precondition or does not allow overwriting.
 */
export const writeScript = `${probes}${writing}
wanted=$2 overwrite=$3 match=$4 whole=$5
f=$1
if [ "$overwrite" = yes ]; then follow "$1"; fi
into=
if [ "$overwrite" = yes ] && [ -z "$match" ]; then if [ -p "$f" ] || [ -c "$f" ] || [ -b "$f" ]; then into=yes; fi; fi
if [ -z "$into" ]; then must_be_replaceable; fi
if [ -n "$match" ]; then (be_unchanged "$match") || be_unchanged_under_lock "$match" || exit; fi
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
if [ -n "$into" ]; then cat "$t" >"$f"; exit; fi
take_lock
set_mode "$wanted"
if [ -n "$match" ]; then be_unchanged "$match"; fi
if [ "$overwrite" = yes ]; then put "$wanted"; exit; fi
place_by ln`

interface FileWrite {
  location: Location
  /** File mode in octal. Defaults to the mode of the replaced file, or to 644 for a new file. */
  mode?: string | undefined
  /** Whether an existing file may be replaced. With `new`, an existing file causes `precondition_failed`. */
  overwrite: boolean | 'new'
  /** SHA-256 hashes. The file is replaced only if its hash is one of them. */
  ifMatch?: Tags | undefined
  /**
   * The content and its SHA-256 hash, or a function that writes the content and then the hexadecimal hash to
   * stdin.
   */
  content: { bytes: Buffer; sha256: string } | ((stdin: Writable) => void)
  timeoutMs?: number
}

/** Writes a file completely or not at all, and creates missing directories. */
export async function writeWhole(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
  signal: AbortSignal,
  { location, mode = 'keep', overwrite, ifMatch, content, ...more }: FileWrite,
): Promise<void> {
  const [stdin, sha256] = typeof content === 'function' ? [content, ''] : [content.bytes, content.sha256]
  const may = overwrite === 'new' ? 'new' : overwrite ? 'yes' : 'no'
  const args = [location.word, mode, may, wordsOf(ifMatch), sha256]
  await runFileScript(worker, call, signal, { text: writeScript, args, stdin, ...more })
}

/** Returns the accepted hashes as one script argument. */
const wordsOf = (tags: Tags | undefined) =>
  tags === undefined
    ? ''
    : tags === '*'
      ? 'any'
      : tags.filter((tag) => /^[0-9a-f]{64}$/.test(tag)).join(' ') || 'none'
