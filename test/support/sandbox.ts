import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { inject } from 'vitest'
import type { Driver, Pod } from '../../workers/drivers/driver.ts'
import { LocalDriver } from '../../workers/drivers/local/index.ts'
import { startClusterWorld } from '../drivers/kubernetes-world.ts'
import { localSettings } from '../drivers/local-settings.ts'
import { untilReady } from '../drivers/processes.ts'
import { ofSandbox } from '../drivers/requests.ts'
import { images } from './cluster.ts'
import { describeOnEveryImage } from './drivers.ts'

export interface Sandboxes {
  driver: Driver
  /** Opens another driver for the same installation. */
  openDriver(): Driver
  make(): Promise<Pod>
  close(): Promise<void>
}

/** Runs a suite with single sandboxes, without an API or a worker: on this machine, and in each image on a cluster. */
export function describeInSandboxes(name: string, suite: (open: () => Promise<Sandboxes>) => void): void {
  describeOnEveryImage(name, ({ driver, env }) =>
    suite(driver === 'local' ? onThisMachine : () => onCluster(env.SANDBOX_IMAGE ?? images.debian)),
  )
}

/** Returns the driver with some methods replaced. */
export const changed = (driver: Driver, changes: Partial<Driver>): Driver =>
  Object.assign(Object.create(driver), changes)

export async function onCluster(image: string): Promise<Sandboxes> {
  const world = await startClusterWorld()
  return { ...(await sandboxesOf(() => world.open(), image)), close: () => world.close() }
}

async function onThisMachine(): Promise<Sandboxes> {
  const directory = mkdtempSync(join(tmpdir(), 'sandlot-sandboxes-'))
  const settings = localSettings({ directory, bwrap: inject('services').bwrap })
  const open = () => new LocalDriver({ settings, installationId: 'test', log: pino({ level: 'silent' }) })
  const sandboxes = await sandboxesOf(open, 'any')
  return {
    ...sandboxes,
    async close() {
      await sandboxes.close()
      rmSync(directory, { recursive: true })
    },
  }
}

async function sandboxesOf(open: () => Driver, image: string): Promise<Sandboxes> {
  const driver = open()
  const drivers = [driver]
  const pods: Pod[] = []
  return {
    driver,
    openDriver() {
      const another = open()
      drivers.push(another)
      return another
    },
    async make() {
      const pod = await driver.create({ ...ofSandbox(), image, deadlineSeconds: 900 })
      pods.push(pod)
      await untilReady(driver, pod)
      return pod
    },
    async close() {
      await Promise.all(pods.map((pod) => driver.delete(pod)))
      await Promise.all(drivers.map((each) => each.close()))
    },
  }
}
