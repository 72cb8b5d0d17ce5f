/** Kills a worker at one crash point of each kind. crash-points.soak.ts tests all points and drivers. */
import { describe } from 'vitest'
import { describeCrashes } from './crash-at.ts'
import { describeCommandCrashes } from './crash-command-at.ts'

describe('a worker is killed', () =>
  describeCrashes('local', [
    'create: the pod exists, its uid is not recorded',
    'delete: the pod is deleted, the row is not marked reaped',
    'expire: the row is ended, the pod lives',
    'reconcile or watch: the row is ended, the pod lives',
    'claim: the row has the pod, the pod is not assigned',
  ]))

describe('a worker is killed with a command', () =>
  describeCommandCrashes('local', [
    'start: the terminal waits, its pid is not recorded',
    'end: the row has the exit status, no client has been notified',
  ]))
