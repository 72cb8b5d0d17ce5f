#!/bin/sh
# Watches over one sandbox, in a session of its own, so that it outlives the worker: starts it,
# ends it at its deadline, and records how it ended. Runs in the pod's folder.
#
#     supervise.sh SECONDS [CGROUP-PROCS-FILE ...] -- COMMAND [ARG ...]
#
# File 3 is the socket that the sandbox accepts connections from.

# The worker writes `go` once it has recorded this process. When the worker dies before that, there
# is nothing to read, and nothing was started.
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

# Counts down anew, at SIGUSR1: a claimed warm sandbox has less time than it was started with. The
# process that counts ends with this one, however it ends: then nobody writes to the pipe any more.
# At SIGALRM `timeout` does what it does when the time is up.
lower() {
  read -r seconds <seconds
  [ -p alive ] || mkfifo alive
  exec 5<>alive
  { (exec timeout -s KILL "$seconds" cat <alive >/dev/null 5>&-) || kill -ALRM "$sandbox"; } 5>&- &
}
trap lower USR1

echo $$ >went || exit 1
# The status does not tell why it ended: readers of `ended` compare its time with the deadline.
(exec timeout -s KILL "$seconds" "$@" 4>status) &
sandbox=$!
exec 3<&-
while
  wait "$sandbox"
  code=$?
  # A signal to this process ends the waiting, not the sandbox.
  kill -0 "$sandbox" 2>/dev/null
do :; done
echo $code >ended
