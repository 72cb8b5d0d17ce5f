/** The drivers that a suite runs on: both where there is a cluster, else the local one alone. */
import { pino } from 'pino'
import { describe } from 'vitest'
import type { Driver } from '../../workers/drivers/driver.ts'
import { openDriver } from '../../workers/drivers/open.ts'
import { hasCluster, images } from './cluster.ts'
import type { World } from './world.ts'

type DriverName = 'local' | 'kubernetes'

const places = [
  ['local', 'on the local driver', true],
  ['kubernetes', 'on Kubernetes', hasCluster],
] as const

export function describeOnBothDrivers(name: string, suite: (driver: DriverName) => void): void {
  for (const [driver, words, isThere] of places)
    describe.skipIf(!isThere)(`${name}, ${words}`, () => suite(driver))
}

/**
 * The same with both at once, the tests of each still one after the other: for what waits more than it computes, and
 * leans on no short time.
 */
export function describeOnBothDriversAtOnce(name: string, suite: (driver: DriverName) => void): void {
  for (const [driver, words, isThere] of places)
    describe.skipIf(!isThere)(name, { concurrent: true }, () => {
      describe(words, { concurrent: false }, () => suite(driver))
    })
}

/** The same, and on Kubernetes in an image too that has little but busybox. */
export function describeOnEveryImage(
  name: string,
  suite: (world: { driver: DriverName; env: Record<string, string> }) => void,
): void {
  describeOnBothDrivers(name, (driver) => suite({ driver, env: {} }))
  describe.skipIf(!hasCluster)(`${name}, in busybox on Kubernetes`, () =>
    suite({ driver: 'kubernetes', env: { SANDBOX_IMAGE: images.busybox } }),
  )
}

/** One more driver of a world's installation, to look at its pods and to harm them. */
export async function openWorldDriver({ db, settings }: World): Promise<Driver> {
  const [installation] = await db.query<{ id: string }>('select id from installation')
  return await openDriver({ settings, installationId: installation!.id, log: pino({ level: 'silent' }) })
}
