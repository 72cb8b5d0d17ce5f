/** Races a create against a destroy at every stage. races.soak.ts has more rounds. */
import { test } from 'vitest'
import { raceCreatesAndDestroys } from './race.ts'

test('destroying 48 sandboxes during or after creation leaves no pods or unfinished rows behind', () =>
  raceCreatesAndDestroys('local', 48))
