/** Repeats the tests of concurrent changes of the settings. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { pickersSettings, settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('every two changes of the settings file at once, ten times', () =>
  tryPairs(settingsFile(world), { rounds: 10, concurrency: 2 }))

test('the picker makes a session current while each other change is made, ten times', () =>
  tryPairs(pickersSettings(world), { rounds: 10, concurrency: 2 }))
