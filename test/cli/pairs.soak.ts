/** Repeats the tests of concurrent changes of the settings. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { pickersSettings, settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('concurrent pairs of settings changes match a sequential order, ten times', () =>
  tryPairs(settingsFile(world), { rounds: 10, concurrency: 2 }))

test('a picker that makes a session current does not conflict with other settings changes, ten times', () =>
  tryPairs(pickersSettings(world), { rounds: 10, concurrency: 2 }))
