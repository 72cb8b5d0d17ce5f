import { afterAll, afterEach, beforeAll } from 'vitest'
import { type Database, openDatabase } from '../../shared/data/database.ts'
import type { Account, CallOptions } from './account.ts'
import { dropDatabase, makeDatabase, type TestDatabase } from './database.ts'
import { startWorld, type World, type WorldOptions } from './index.ts'
import { describeProcess } from './process.ts'
import { type Inside, inside } from './sandbox-commands.ts'

/** Shares one world among the tests of a file. Each test has its own account. */
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
  return standIn(() => world!)
}

/** Shares one migrated database among the tests of a file. */
export function shareDatabase(): { made: TestDatabase; db: Database } {
  let made: TestDatabase | undefined
  let db: Database | undefined
  beforeAll(async () => {
    made = await makeDatabase()
    db = openDatabase(made.url)
  })
  afterAll(async () => {
    await db?.close()
    if (made) await dropDatabase(made)
  })
  return { made: standIn(() => made!), db: standIn(() => db!) }
}

export interface SharedSandbox extends Inside {
  world: World
  alice: Account
  params: { id: string }
}

/** Shares one world, account and sandbox among the tests of a group. */
export function shareSandbox(
  options: WorldOptions = {},
  body: NonNullable<CallOptions<'createSandbox'>['body']> = {},
): SharedSandbox {
  const world = shareWorld(options)
  let made: Pick<SharedSandbox, 'alice' | 'params'> | undefined
  beforeAll(async () => {
    const alice = await world.account()
    made = { alice, params: { id: (await alice.call('createSandbox', { body })).body.id } }
  })
  const alice = standIn(() => made!.alice)
  const params = {
    get id() {
      return made!.params.id
    },
  }
  return { world, alice, params, ...inside(alice, params) }
}

/** A proxy for an object that exists only while the tests run. */
export const standIn = <T extends object>(get: () => T): T =>
  new Proxy({} as T, { get: (_, name) => Reflect.get(get(), name) })
