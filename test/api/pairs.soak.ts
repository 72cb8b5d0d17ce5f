/** Runs the gate's pairs in many rounds. On a cluster, it also tests pairs that need a pod each. */
import { describe, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { describeOnEveryImage } from '../support/drivers.ts'
import { tryPairs } from '../support/pairs.ts'
import { shareSandbox, shareWorld } from '../support/shared.ts'
import { testFilePairs } from './file-pairs.ts'
import { roomForPairs, sandboxes, testPairs } from './pairs.ts'

describe('all pairs of concurrent requests, twenty times', () => testPairs(20))

describe.skipIf(!hasCluster)('two concurrent requests on Kubernetes', () => {
  const world = shareWorld({ driver: 'kubernetes', env: roomForPairs })
  test('two concurrent requests behave as if one ran after the other', () =>
    tryPairs(sandboxes(world), { rounds: 3, concurrency: 4 }))
})

describeOnEveryImage('all pairs of concurrent file requests, three times', ({ driver, env }) =>
  testFilePairs(shareSandbox({ driver, env }), 3),
)
