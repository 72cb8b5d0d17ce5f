/** A few races of a create and a destroy of one sandbox, at every stage. races.soak.ts has many, on each driver. */
import { test } from 'vitest'
import { raceCreatesAndDestroys } from './race.ts'

test('a create and a destroy of one sandbox are raced 48 times: no pod and no unfinished row is left', () =>
  raceCreatesAndDestroys('local', 48))
