import type { Driver, Pod } from '../drivers/driver.ts'
import { openSlot, type Slot } from '../shell/slot.ts'

/**
 * Resolves when a command can run in the pod. Where starting a process is slow, that is when the first slot answers,
 * and the first command then uses it.
 */
export async function awaitFirstSlot(
  driver: Driver,
  pod: Pod,
  signal: AbortSignal,
): Promise<Slot | undefined> {
  let first: Slot | undefined
  const trial = async () => {
    const slot = await openSlot(driver, pod)
    if (signal.aborted) slot.close()
    else first = slot
  }
  await driver.ready(pod, signal, driver.startsSlowly ? trial : undefined)
  return first
}
