#!/bin/sh
# Ends every process of a sandbox that has no process namespace of its own.
#
#     end-plain.sh MARKER UID
#
# With a UID of the sandbox's own, nobody can hide from it. Without one (not root), processes are
# known by the marker in their environment, which a process can take off.

marker=$1 uid=$2

if [ -n "$uid" ]; then
  setpriv --reuid "$uid" --regid "$uid" --clear-groups sh -c 'kill -KILL -1' 2>/dev/null
  exit 0
fi

list() {
  if [ -d /proc/self ]; then
    for folder in /proc/[0-9]*; do
      tr '\0' '\n' 2>/dev/null <"$folder/environ" | grep -qx "SANDBOX_POD=$marker" && echo "${folder#/proc/}"
    done 2>/dev/null
  else
    ps -axwwE -o pid=,command= | grep "SANDBOX_POD=$marker" | grep -v grep | while read -r pid _; do echo "$pid"; done
  fi
}

# Repeated, for processes that were started meanwhile.
for round in 1 2 3 4 5; do
  pids=$(list)
  [ -n "$pids" ] || exit 0
  # shellcheck disable=SC2086
  kill -KILL $pids 2>/dev/null
done
