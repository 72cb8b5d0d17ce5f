#!/bin/sh
# Supervises one sandbox: starts it, ends it at its deadline, and records its end. It runs in the
# pod's folder, and in a separate session, so that it outlives the worker.
#
#     supervise.sh SECONDS [CGROUP-PROCS-FILE ...] -- COMMAND [ARG ...]
#
# File descriptor 3 is the socket on which the sandbox accepts connections.

# The worker writes `go` once it has recorded this process. If the worker dies before that, this
# process reads EOF and exits without having started anything.
read -r go || exit 1
[ "$go" = go ] || exit 1
exec </dev/null

seconds=$1
shift
while [ "$1" != -- ]; do
  echo $$ >"$1" || exit 1
  shift
done
shift

# SIGUSR1 lowers the deadline when a warm sandbox is claimed. A second `timeout` sends SIGALRM to the
# first one, which then ends the sandbox as if its own time had elapsed. If this process ends for any
# reason, the pipe has no writer left, and the second `timeout` ends as well.
lower() {
  read -r seconds <seconds
  [ -p alive ] || mkfifo alive
  exec 5<>alive
  { (exec timeout -s KILL "$seconds" cat <alive >/dev/null 5>&-) || kill -ALRM "$sandbox"; } 5>&- &
}
trap lower USR1

echo $$ >went || exit 1
# The exit code does not show why the sandbox ended. Readers compare the time of `ended` with the deadline.
(exec timeout -s KILL "$seconds" "$@" 4>status) &
sandbox=$!
exec 3<&-
while
  wait "$sandbox"
  code=$?
  # A signal to this process interrupts `wait` while the sandbox keeps running.
  kill -0 "$sandbox" 2>/dev/null
do :; done
echo $code >ended
