/** Ends the processes of a pod that may have no room for one more. */
import { once } from 'node:events'
import { within } from '../../../shared/platform/patience.ts'
import { DriverUnavailable, PodExhausted, type Process } from '../driver.ts'
import { usedUpBy } from '../exhausted.ts'

const ANSWER_MS = 10_000

/**
 * The shell starts no process: all that it calls is its own. A runtime puts it into the pod whatever the limit says.
 * Process 1 and the first one after it keep the pod. The others are stopped first, until no other one appears: who is
 * stopped starts nothing, and makes no room for it.
 */
export const endAllArgv = [
  '/bin/sh',
  '-c',
  `cd /proc; main=; for p in [0-9]*; do
if [ "$p" -gt 1 ] && { [ -z "$main" ] || [ "$p" -lt "$main" ]; }; then main=$p; fi; done
signal() { for p; do case $p in 1|$$|$main) ;; *) kill -"$s" "$p" 2>/dev/null;; esac; done; }
i=0; was=; s=STOP; set -- [0-9]*; while [ "$*" != "$was" ] && [ "$i" -lt 100 ]; do
signal "$@"; was=$*; i=$((i+1)); set -- [0-9]*; done
s=KILL; signal [0-9]*; echo done; read -r _`,
]

/** @throws {DriverUnavailable} it did not say that it is done */
export async function endAllProcesses(process: Process): Promise<void> {
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
  process.stderr.resume()
  try {
    const word = once(process.stdout, 'data').then(() => undefined)
    const end = await within(ANSWER_MS, Promise.race([word.catch(() => process.ended), process.ended]), late)
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
