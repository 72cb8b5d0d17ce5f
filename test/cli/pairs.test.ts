/** Concurrent settings changes must have the same result as if run one after the other. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('two concurrent settings changes behave as if run one after the other', () =>
  tryPairs(settingsFile(world), { rounds: 1, concurrency: 2 }))
