/** Shell commands that run in the sandbox to copy folders. */

const firstLine = '# sandlot cp'

export const copyExits = { partial: 9, interrupted: 130 }

/**
 * Unpacks an archive into a temporary folder in or next to the target, then renames each entry. Works with
 * busybox and Debian. $1 is the target, $2 is the temporary folder's name, and $3 is `yes` to set the
 * target's own mode. In the archive, the copied folder is named `root`. The `modes` file lists folder modes
 * to set after unpacking.
 */
const unpackScript = `${firstLine}
export LC_ALL=C
umask 022
if [ -d "$1" ]; then stage=$1/$2; else stage=\${1%/*}/$2; mkdir -p "\${1%/*}/" || exit 1; fi
clean_up() {
  trap '' HUP INT TERM
  if [ -n "$unpacking" ]; then kill -KILL "$!" 2>/dev/null; wait "$!" 2>/dev/null; fi
  chmod -R u+rwX "$stage" 2>/dev/null
  rm -rf "$stage"
}
unpacking=
trap clean_up EXIT
trap 'exit ${copyExits.interrupted}' INT
trap 'exit 143' HUP TERM
umask 077
mkdir "$stage" || exit 1
# A shell that waits for a foreground command runs no trap, and tar may miss a signal while it starts.
exec 3<&0
unpacking=yes
(umask 0; exec tar -x -p -o -f - -C "$stage" <&3) &
wait "$!" || exit 1
unpacking=
if [ ! -e "$stage/modes" ]; then echo 'The archive is truncated.' >&2; exit 1; fi
if [ -s "$stage/modes" ]; then (cd "$stage/root" && xargs -0 -n 2 chmod <../modes) || exit 1; fi
status=0
refuse() { printf '%s: %s\\n' "$1" "$2" >&2; status=${copyExits.partial}; }
mode_and_time() { stat -c '%a %Y' "$1"; }
set_both() { chmod "\${2% *}" "$1" && touch -d "@\${2#* }" "$1" || status=${copyExits.partial}; }
make_accessible() { if [ ! -r "$1" ] || [ ! -w "$1" ] || [ ! -x "$1" ]; then chmod u+rwx "$1"; fi; }
move() {
  target=$2
  shift 3
  if [ $# -gt 0 ]; then mv -f -- "$@" "$target/" || status=${copyExits.partial}; fi
}
move_locked() {
  set -- "$1" "$2" "$(mode_and_time "$1")"
  chmod u+w "$1" && mv -f -- "$1" "$2/" && set_both "$2/\${1##*/}" "$3" || status=${copyExits.partial}
}
merge() {
  make_accessible "$1"
  if [ -n "$3" ]; then make_accessible "$2"; fi
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    place=$2/\${entry##*/}
    if [ -L "$entry" ] || [ -f "$entry" ]; then
      if [ -e "$place" ] && [ ! -f "$place" ] && [ ! -L "$place" ]; then refuse "$place" 'is not a file and is not replaced'; continue; fi
    elif [ -d "$entry" ]; then
      if [ -d "$place" ]; then merge "$entry" "$place" "$(mode_and_time "$entry")"; continue; fi
      if [ -e "$place" ] || [ -L "$place" ]; then refuse "$place" 'is not a folder and is not replaced'; continue; fi
      if [ ! -w "$entry" ]; then move_locked "$entry" "$2"; continue; fi
    else continue
    fi
    set -- "$@" "$entry"
    if [ $# -gt 100 ]; then move "$@"; set -- "$1" "$2" "$3"; fi
  done
  move "$@"
  if [ -n "$3" ]; then set_both "$2" "$3"; fi
}
if [ ! -d "$1" ]; then mkdir "$1" || exit 1; fi
if [ "$3" = yes ]; then merge "$stage/root" "$1" "$(mode_and_time "$stage/root")"; else merge "$stage/root" "$1" ''; fi
exit "$status"`

const cleanUpScript = `${firstLine}
if [ -d "$1/$2" ]; then stage=$1/$2; else stage=\${1%/*}/$2; fi
chmod -R u+rwX "$stage" 2>/dev/null; rm -rf "$stage"`

const runScript = (script: string, ...args: string[]): string[] => ['sh', '-c', script, 'sh', ...args]

export const cleanUpCommand = (target: string, temporary: string): string[] =>
  runScript(cleanUpScript, target, temporary)

export const unpackCommand = (target: string, temporary: string, setsRoot: boolean): string[] =>
  runScript(unpackScript, target, temporary, setsRoot ? 'yes' : 'no')

export const packCommand = (path: string): string[] => ['tar', '-c', '-f', '-', '-C', path, '.']

/** Prefixes a command with `(sandlot cp)` if `sandlot cp` started it, for display in lists of commands. */
export function marked(command: string): string {
  const isOfCp = command.startsWith(`sh -c '${firstLine}`) || /^tar -c -f - -C .+ \.$/.test(command)
  return isOfCp ? `(sandlot cp) ${command}` : command
}
