import { once } from 'node:events'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import { DriverUnavailable, PodExhausted, type Process } from '../driver.ts'
import { usedUpBy } from '../exhausted.ts'

const roundsMs = 10_000
/** Maximum number of attempts to kill all processes. Killed processes take a moment to disappear. */
const maxRounds = 100

/**
 * A script that kills all processes in a pod except process 1 and the process with the next lowest PID, which
 * keep the pod running. The script also works if the pod has reached its process limit, because container
 * runtimes start its shell even then, and it starts no other process.
 *
 * Each attempt first stops all other processes with one signal, so that none of them can fork. The kernel
 * sends SIGHUP and SIGCONT to stopped processes in orphaned groups, so later attempts stop them again.
 */
export const killAllArgv = [
  '/bin/sh',
  '-c',
  `cd /proc; main=; for p in [0-9]*; do
if [ "$p" -gt 1 ] && { [ -z "$main" ] || [ "$p" -lt "$main" ]; }; then main=$p; fi; done
i=0 left=yes; while [ -n "$left" ] && [ "$i" -lt ${maxRounds} ]; do
left=; i=$((i+1)); kill -STOP -1 2>/dev/null
for p in [0-9]*; do case $p in 1|$$|$main) ;; *) left=yes; kill -KILL "$p" 2>/dev/null;; esac; done; done
kill -CONT "$main"; echo done; read -r _`,
]

/**
 * Waits until the script in {@link killAllArgv} reports completion, and then closes it.
 * @throws {DriverUnavailable} if the script did not report completion
 */
export async function killAllProcesses(process: Process): Promise<void> {
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
  process.stderr.resume()
  try {
    const done = once(process.stdout, 'data').then(() => undefined)
    const end = await withTimeout(
      roundsMs,
      Promise.race([done.catch(() => process.ended), process.ended]),
      late,
    )
    if (end === undefined) return
    const why = end.kind === 'lost' ? end.why : `it exited with code ${end.code}`
    const resource = usedUpBy(why)
    throw resource ? new PodExhausted(resource, why) : new DriverUnavailable(why)
  } finally {
    process.close()
  }
}

const late = () => {
  throw new DriverUnavailable('the pod did not respond')
}
