import { test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { raceEnv, raceExtensions } from './extension-race.ts'

const world = shareWorld({ apis: 2, env: raceEnv })

test('each of 200 extensions that race an expiry takes effect or is refused, and its response says which', () =>
  raceExtensions(world, 200))
