/** Two clients that change the settings at the same moment: some order of the two explains what is there then. */
import { test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { settingsFile } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('every two changes of the settings file at once', () =>
  tryPairs(settingsFile(world), { rounds: 1, concurrency: 2 }))
