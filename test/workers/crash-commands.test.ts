/** Kills a worker while it starts or ends a command. crash-points.soak.ts tests every point with each driver. */
import { describe } from 'vitest'
import { describeCommandCrashes } from './crash-command-at.ts'

describe('a worker is killed', () =>
  describeCommandCrashes('local', [
    'start: the terminal waits, the row does not know its pid',
    'end: the row says how it ended, nobody was told',
  ]))
