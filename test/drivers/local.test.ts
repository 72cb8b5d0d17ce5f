import { describe } from 'vitest'
import { describeDriver } from './contract/index.ts'
import { keepDirectory, openDriver } from './local-world.ts'

keepDirectory()

describe('with isolation', () => {
  describeDriver('local', async () => {
    const { driver } = openDriver()
    return { driver, image: 'any', close: () => driver.close() }
  })
})
