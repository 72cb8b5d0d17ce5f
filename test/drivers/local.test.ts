/** The contract of drivers on this machine, behind walls. */
import { describe } from 'vitest'
import { describeDriver } from './contract/index.ts'
import { hasWalls, openDriver } from './local-world.ts'

describe.runIf(hasWalls)('with walls', () => {
  describeDriver('local', async () => {
    const { driver } = openDriver()
    return { driver, image: 'any', close: () => driver.close() }
  })
})
