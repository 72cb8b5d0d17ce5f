/** Ends the processes of a pod that may have no room for one more. */
import { once } from 'node:events'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import { DriverUnavailable, PodExhausted, type Process } from '../driver.ts'
import { usedUpBy } from '../exhausted.ts'

/** Milliseconds that its rounds may take. That is work, and no silence. */
const roundsMs = 10_000

/** How often it looks again for processes: those that were killed take a moment to go. */
const maxRounds = 100

/**
 * The shell starts no process: all that it calls is its own. A runtime puts it into the pod whatever the limit says.
 * Process 1 and the first one after it keep the pod. One signal stops all others at the same moment, so no fork gets
 * past it, and who is stopped makes no room for more. But who loses its parent goes on, unless a hang-up ends it. So
 * all are stopped again before each round.
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

/** @throws {DriverUnavailable} it did not say that it is done */
export async function killAllProcesses(process: Process): Promise<void> {
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
  process.stderr.resume()
  try {
    const word = once(process.stdout, 'data').then(() => undefined)
    const end = await withTimeout(
      roundsMs,
      Promise.race([word.catch(() => process.ended), process.ended]),
      late,
    )
    if (end === undefined) return
    const why = end.kind === 'lost' ? end.why : `it ended with status ${end.code}`
    const resource = usedUpBy(why)
    throw resource ? new PodExhausted(resource, why) : new DriverUnavailable(why)
  } finally {
    process.close()
  }
}

const late = () => {
  throw new DriverUnavailable('the pod did not answer')
}
