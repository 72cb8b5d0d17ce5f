import { test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { raceEnv, raceExtensions } from './extension-race.ts'

const world = shareWorld({ apis: 2, env: raceEnv })

test('of 1,000 extensions sent at the moment of expiry, each takes effect or is refused as its response says', () =>
  raceExtensions(world, 1_000))
