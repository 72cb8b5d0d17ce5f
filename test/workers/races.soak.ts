/** A create and a destroy of one sandbox, raced until chance has had its say. */
import { test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { raceCreatesAndDestroys } from './race.ts'

/** Each takes real time on the cluster; what is raced is the same code. */
const rounds = { local: 1_000, kubernetes: 100 }

describeOnBothDrivers('a create and a destroy of one sandbox', (driver) => {
  test(
    `are raced ${rounds[driver]} times: no pod and no unfinished row is left`,
    () => raceCreatesAndDestroys(driver, rounds[driver]),
    600_000,
  )
})
