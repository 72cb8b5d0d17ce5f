/** Kills a worker while a command starts or ends. crash-points.soak.ts tests all points and drivers. */
import { describe } from 'vitest'
import { describeCommandCrashes } from './crash-command-at.ts'

describe('a worker is killed', () =>
  describeCommandCrashes('local', [
    'start: the terminal waits, its pid is not recorded',
    'end: the row has the exit status, no client has been notified',
  ]))
