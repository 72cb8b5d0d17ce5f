import { afterAll, afterEach, beforeAll } from 'vitest'
import { startWorld, type World, type WorldOptions } from './index.ts'
import { describeProcess } from './process.ts'

/** One world for all tests of a file, which keep out of each other's way by accounts of their own. */
export function shareWorld(options: WorldOptions = {}): World {
  let world: World | undefined
  beforeAll(async () => {
    world = await startWorld(options)
  })
  afterEach(({ task }) => {
    if (task.result?.state !== 'fail' || !world) return
    for (const process of [...world.apis, ...world.workers]) console.error(describeProcess(process))
  })
  afterAll(() => world?.[Symbol.asyncDispose]())
  return new Proxy({} as World, { get: (_, name) => Reflect.get(world!, name) })
}
