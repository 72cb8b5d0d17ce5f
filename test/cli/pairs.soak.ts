/** Repeats the tests of concurrent changes of the settings. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { pickersSettings, settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('any two concurrent changes of the settings file are serializable, ten times', () =>
  tryPairs(settingsFile(world), { rounds: 10, atOnce: 2 }))

test('a picker making a session current and any other change are serializable, ten times', () =>
  tryPairs(pickersSettings(world), { rounds: 10, atOnce: 2 }))
