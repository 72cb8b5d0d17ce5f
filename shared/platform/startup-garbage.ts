import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Collects the garbage of a process's startup, which takes 30 ms. V8 returns unused memory to the system only
 * after a full garbage collection. An idle process might not run one for hours, and would keep 20 MiB that only
 * its startup needed.
 */
export function collectStartupGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collect()
}
