/** The drivers that a suite runs on: both where there is a cluster, else the local one alone. */
import { describe } from 'vitest'

type DriverName = 'local' | 'kubernetes'

export function describeOnBothDrivers(name: string, suite: (driver: DriverName) => void): void {
  describe(`${name}, on the local driver`, () => suite('local'))
  describe.skipIf(!process.env.KUBECONFIG)(`${name}, on Kubernetes`, () => suite('kubernetes'))
}
