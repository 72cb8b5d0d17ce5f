import type { Driver, DriverOptions } from './driver.ts'

export async function openDriver(options: DriverOptions): Promise<Driver> {
  if (options.settings.driver === 'local') {
    const { LocalDriver } = await import('./local/index.ts')
    return new LocalDriver(options)
  }
  const { KubernetesDriver } = await import('./kubernetes/index.ts')
  return new KubernetesDriver(options)
}
