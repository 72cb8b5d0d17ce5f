/** The only file that knows which drivers there are. Each is loaded only where it is used. */
import type { Logger } from '../../shared/platform/log.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Driver } from './driver.ts'

export interface DriverOptions {
  settings: Settings
  /** Only pods that carry this id are ours. */
  installationId: string
  log: Logger
}

export async function openDriver(options: DriverOptions): Promise<Driver> {
  if (options.settings.driver === 'local') {
    const { openLocalDriver } = await import('./local/index.ts')
    return openLocalDriver(options)
  }
  const { openKubernetesDriver } = await import('./kubernetes/index.ts')
  return openKubernetesDriver(options)
}
