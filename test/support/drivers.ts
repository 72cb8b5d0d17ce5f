import { pino } from 'pino'
import { describe } from 'vitest'
import type { Driver } from '../../workers/drivers/driver.ts'
import { openDriver } from '../../workers/drivers/open.ts'
import { hasCluster, images } from './cluster.ts'
import { isSoak } from './eventually.ts'
import type { World } from './world.ts'

export type DriverName = 'local' | 'kubernetes'

interface Place {
  words: string
  driver: DriverName
  env: Record<string, string>
  isAlive: boolean
}

export const hasLocal = process.env.SANDLOT_TEST_DRIVER !== 'kubernetes'

const bothDrivers: Place[] = [
  { words: 'on the local driver', driver: 'local', env: {}, isAlive: hasLocal },
  { words: 'on Kubernetes', driver: 'kubernetes', env: {}, isAlive: hasCluster },
]
const inBusybox = { SANDBOX_IMAGE: images.busybox }
/** The gate uses this machine's tools locally and busybox on Kubernetes. The soak uses every image. */
const everyImage: Place[] = [
  ...(process.env.SANDLOT_IMAGES === 'all' ? bothDrivers : bothDrivers.slice(0, 1)),
  { words: 'in busybox on Kubernetes', driver: 'kubernetes', env: inBusybox, isAlive: hasCluster },
]

type Describe = (places: Place[], name: string, suite: (place: Place) => void) => void

const oneByOne: Describe = (places, name, suite) => {
  for (const place of places) describe.skipIf(!place.isAlive)(`${name}, ${place.words}`, () => suite(place))
}

const atOnce: Describe = (places, name, suite) => {
  for (const place of places)
    describe.skipIf(!place.isAlive)(name, { concurrent: true }, () => {
      describe(place.words, { concurrent: false }, () => suite(place))
    })
}

/** The soak checks durations, so it uses one driver at a time. */
const concurrentInGate = isSoak ? oneByOne : atOnce

export const describeOnBothDrivers = (name: string, suite: (driver: DriverName) => void) =>
  concurrentInGate(bothDrivers, name, ({ driver }) => suite(driver))

const bothInSoak = isSoak ? bothDrivers : bothDrivers.slice(0, 1)

/**
 * Runs a suite on both drivers in the soak, but only on the local driver in the gate. For tests of workers
 * rather than pods.
 */
export const describeOnBothInSoak = (name: string, suite: (driver: DriverName) => void) =>
  concurrentInGate(bothInSoak, name, ({ driver }) => suite(driver))

export const describeOnBothInSoakAtOnce = (name: string, suite: (driver: DriverName) => void) =>
  atOnce(bothInSoak, name, ({ driver }) => suite(driver))

/** Runs a suite on every image. For tests that depend on an image's tools. */
export const describeOnEveryImage = (name: string, suite: (place: Place) => void) =>
  concurrentInGate(everyImage, name, suite)

/**
 * Runs a suite on both drivers at once, even in the soak. For tests that mostly wait and do not check short
 * durations.
 */
export const describeOnBothDriversAtOnce = (name: string, suite: (driver: DriverName) => void) =>
  atOnce(bothDrivers, name, ({ driver }) => suite(driver))

export const describeOnEveryImageAtOnce = (name: string, suite: (place: Place) => void) =>
  atOnce(everyImage, name, suite)

/** Opens a second driver, to inspect and disrupt the world's pods. */
export async function openWorldDriver({ db, settings }: World): Promise<Driver> {
  const [installation] = await db.query<{ id: string }>('select id from installation')
  return await openDriver({ settings, installationId: installation!.id, log: pino({ level: 'silent' }) })
}
