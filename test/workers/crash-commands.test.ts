/** A worker is killed while it starts or ends a command. crash-points.soak.ts has every point, on each driver. */
import { describe } from 'vitest'
import { describeCommandCrashes } from './crash-command-at.ts'

describe('a worker is killed', () =>
  describeCommandCrashes('local', [
    'start: the terminal waits, the row does not know its pid',
    'end: the row says how it ended, nobody was told',
  ]))
