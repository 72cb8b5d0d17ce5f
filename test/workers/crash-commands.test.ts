/** Kills a worker while it starts or ends a command. crash-points.soak.ts tests every point with each driver. */
import { describe } from 'vitest'
import { describeCommandCrashes } from './crash-command-at.ts'

describe('a worker is killed', () =>
  describeCommandCrashes('local', [
    'start: the terminal waits, its pid is not recorded',
    'end: the row has the exit status, no client has been notified',
  ]))
