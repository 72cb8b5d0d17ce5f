/** Concurrent changes of the settings by two clients. The result must match one of the two sequential orders. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('two concurrent settings changes behave as if one ran after the other', () =>
  tryPairs(settingsFile(world), { rounds: 1, concurrency: 2 }))
