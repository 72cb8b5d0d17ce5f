/** The drivers that a suite runs on: both where there is a cluster, else the local one alone. */
import { pino } from 'pino'
import { describe } from 'vitest'
import type { Driver } from '../../workers/drivers/driver.ts'
import { openDriver } from '../../workers/drivers/open.ts'
import type { World } from './index.ts'

type DriverName = 'local' | 'kubernetes'

export function describeOnBothDrivers(name: string, suite: (driver: DriverName) => void): void {
  describe(`${name}, on the local driver`, () => suite('local'))
  describe.skipIf(!process.env.KUBECONFIG)(`${name}, on Kubernetes`, () => suite('kubernetes'))
}

const busybox = process.env.SANDLOT_TEST_BUSYBOX ?? 'localhost/sandbox:busybox'

/** The same, and on Kubernetes in an image too that has little but busybox. */
export function describeOnEveryImage(
  name: string,
  suite: (world: { driver: DriverName; env: Record<string, string> }) => void,
): void {
  describeOnBothDrivers(name, (driver) => suite({ driver, env: {} }))
  describe.skipIf(!process.env.KUBECONFIG)(`${name}, in busybox on Kubernetes`, () =>
    suite({ driver: 'kubernetes', env: { SANDBOX_IMAGE: busybox } }),
  )
}

/** One more driver of a world's installation, to look at its pods and to harm them. */
export async function openWorldDriver({ db, settings }: World): Promise<Driver> {
  const [installation] = await db.query<{ id: string }>('select id from installation')
  return await openDriver({ settings, installationId: installation!.id, log: pino({ level: 'silent' }) })
}
