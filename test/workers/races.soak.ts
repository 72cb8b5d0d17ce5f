/** Races creates against destroys with random delays. */
import { test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { raceCreatesAndDestroys } from './race.ts'

/** Few rounds on the cluster, where each takes long and tests the same code. */
const rounds = { local: 1_000, kubernetes: 100 }

describeOnBothDrivers('concurrent creates and destroys of a sandbox', (driver) => {
  test(
    `${rounds[driver]} sandboxes destroyed during or after creation leave no pods or unfinished rows behind`,
    () => raceCreatesAndDestroys(driver, rounds[driver]),
    600_000,
  )
})
