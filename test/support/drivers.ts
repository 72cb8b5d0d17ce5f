/** The drivers that a suite runs on: both where there is a cluster, else only the local one. */
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
  /** Settings of its world. */
  env: Record<string, string>
  isAlive: boolean
}

/** `npm run soak -- --driver kubernetes` has no local half; with `--driver local` there is no cluster. */
export const hasLocal = process.env.SANDLOT_TEST_DRIVER !== 'kubernetes'

const bothDrivers: Place[] = [
  { words: 'on the local driver', driver: 'local', env: {}, isAlive: hasLocal },
  { words: 'on Kubernetes', driver: 'kubernetes', env: {}, isAlive: hasCluster },
]
const inBusybox = { SANDBOX_IMAGE: images.busybox }
/**
 * On most machines the local driver finds debian's tools. So the gate tests debian's tools with it, and busybox, the
 * smallest, on Kubernetes. The soak has every image (vitest.soak.config.ts).
 */
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

/** In the soak, where times count, each driver has the machine to itself. */
const inTurn = isSoak ? oneByOne : atOnce

export const describeOnBothDrivers = (name: string, suite: (driver: DriverName) => void) =>
  inTurn(bothDrivers, name, ({ driver }) => suite(driver))

const bothInSoak = isSoak ? bothDrivers : bothDrivers.slice(0, 1)

/** In the gate on the local driver alone: for what mostly waits, and is about workers and not about pods. */
export const describeOnBothInSoak = (name: string, suite: (driver: DriverName) => void) =>
  inTurn(bothInSoak, name, ({ driver }) => suite(driver))

export const describeOnBothInSoakAtOnce = (name: string, suite: (driver: DriverName) => void) =>
  atOnce(bothInSoak, name, ({ driver }) => suite(driver))

/** On each driver and, of them all, in each image: for what leans on the tools in it. */
export const describeOnEveryImage = (name: string, suite: (place: Place) => void) =>
  inTurn(everyImage, name, suite)

/**
 * In the soak too all at once, the tests of each one after the other: for what waits more than it computes, and leans on
 * no short time.
 */
export const describeOnBothDriversAtOnce = (name: string, suite: (driver: DriverName) => void) =>
  atOnce(bothDrivers, name, ({ driver }) => suite(driver))

export const describeOnEveryImageAtOnce = (name: string, suite: (place: Place) => void) =>
  atOnce(everyImage, name, suite)

/** One more driver of a world's installation, to look at its pods and to harm them. */
export async function openWorldDriver({ db, settings }: World): Promise<Driver> {
  const [installation] = await db.query<{ id: string }>('select id from installation')
  return await openDriver({ settings, installationId: installation!.id, log: pino({ level: 'silent' }) })
}
