/** Repeats the tests of concurrent settings changes. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { pickersSettings, settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('in ten rounds, concurrent settings changes behave as if run one after the other', () =>
  tryPairs(settingsFile(world), { rounds: 10, concurrency: 2 }))

test('in ten rounds, making a session current in the picker does not conflict with other settings changes', () =>
  tryPairs(pickersSettings(world), { rounds: 10, concurrency: 2 }))
