/** The pairs of the gate, many times. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('every two changes of the settings file at once, ten times', () =>
  tryPairs(settingsFile(world), { rounds: 10, atOnce: 2 }))
