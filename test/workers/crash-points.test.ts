/** Kills a worker at one crash point of each kind. crash-points.soak.ts tests all of them with each driver. */
import { describe } from 'vitest'
import { describeCrashes } from './crash-at.ts'

describe('a worker is killed', () =>
  describeCrashes('local', [
    'create: the pod is made, the row does not know it',
    'delete: the pod is deleted, the row does not say so',
    'expire: the row is ended, the pod lives',
    'sweep or watch: the row is ended, the pod lives',
    'claim: the row has the pod, which does not know it',
  ]))
