import { test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { raceEnv, raceExtensions } from './extension-race.ts'

const world = shareWorld({ apis: 2, env: raceEnv })

test('each of 100 TTL extensions sent at the moment of expiry has the effect reported in its response', () =>
  raceExtensions(world, { extensions: 100, concurrency: 8 }))
