/** Races a create against a destroy at every stage. races.soak.ts has more rounds. */
import { test } from 'vitest'
import { raceCreatesAndDestroys } from './race.ts'

test('48 concurrent creates and destroys of a sandbox leave no pods or unfinished rows behind', () =>
  raceCreatesAndDestroys('local', 48))
