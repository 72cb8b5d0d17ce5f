import { test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { raceEnv, raceExtensions } from './extension-race.ts'

const world = shareWorld({ apis: 2, env: raceEnv })

test('each of 100 extensions sent at the moment of expiry has the effect that its response reports', () =>
  raceExtensions(world, { extensions: 100, concurrency: 8 }))
