/** Kinds of faults, and a schedule that depends only on the seed. */
import { between, makeRandom, pickWeighted } from '../random.ts'

interface Kind {
  /** Relative frequency. Faults that require a restart are rare, to allow several faults per second. */
  weight: number
  /** Minimum and maximum duration in milliseconds. */
  lasts: [number, number]
  only?: 'local' | 'kubernetes'
}

const faultKinds = {
  'a client leaves': { weight: 14, lasts: [0, 0] },
  'a connection to PostgreSQL is cut': { weight: 8, lasts: [0, 100] },
  'a connection to PostgreSQL loses answers': { weight: 4, lasts: [50, 700] },
  'a connection to PostgreSQL is slow': { weight: 4, lasts: [200, 1_000] },
  'a connection to PostgreSQL is forgotten': { weight: 3, lasts: [1_000, 6_000] },
  'a connection to Redis is cut': { weight: 8, lasts: [0, 100] },
  'a connection to Redis loses answers': { weight: 4, lasts: [50, 700] },
  'a connection to Redis is slow': { weight: 3, lasts: [200, 1_000] },
  'a connection to Redis is forgotten': { weight: 3, lasts: [1_000, 6_000] },
  'a connection from API to worker is cut': { weight: 10, lasts: [0, 300] },
  'a connection from API to worker loses answers': { weight: 5, lasts: [100, 4_500] },
  'a connection from API to worker is frozen': { weight: 4, lasts: [100, 5_000] },
  'a connection from API to worker is slow': { weight: 4, lasts: [200, 1_500] },
  'a connection from API to worker is forgotten': { weight: 3, lasts: [1_000, 12_000] },
  'the connection to the cluster is cut': { weight: 4, lasts: [0, 1_000], only: 'kubernetes' },
  'the connection to the cluster is frozen': { weight: 2, lasts: [200, 3_000], only: 'kubernetes' },
  'connections of PostgreSQL are terminated': { weight: 10, lasts: [0, 0] },
  'PostgreSQL is frozen': { weight: 2, lasts: [100, 1_500] },
  'PostgreSQL is killed': { weight: 2, lasts: [0, 500] },
  'Redis is flushed': { weight: 7, lasts: [0, 0] },
  'Redis is full': { weight: 2, lasts: [100, 1_500] },
  'Redis is frozen': { weight: 2, lasts: [100, 2_500] },
  'Redis is killed': { weight: 2, lasts: [0, 500] },
  "Redis' disk is full": { weight: 2, lasts: [100, 1_500] },
  "Redis' clock steps": { weight: 2, lasts: [0, 0] },
  'PostgreSQL has no space': { weight: 2, lasts: [200, 3_000] },
  "PostgreSQL's clock leaps forward": { weight: 2, lasts: [0, 0] },
  'a process is frozen briefly': { weight: 10, lasts: [50, 800] },
  'a process is frozen past its locks': { weight: 2, lasts: [4_000, 9_000] },
  'an API is killed': { weight: 2, lasts: [0, 500] },
  'a worker is killed': { weight: 3, lasts: [0, 500] },
  'a process receives SIGTERM': { weight: 1, lasts: [0, 0] },
  'a start is frozen': { weight: 2, lasts: [500, 6_000] },
  'a clock is moved': { weight: 4, lasts: [500, 3_000] },
  // On a cluster, only the kubelet can kill a pod's first process.
  'a pod is killed': { weight: 3, lasts: [0, 0], only: 'local' },
  'a pod is deleted': { weight: 3, lasts: [0, 0] },
  'a pod is out of memory': { weight: 2, lasts: [0, 0], only: 'kubernetes' },
  'a pod is evicted': { weight: 2, lasts: [0, 0], only: 'kubernetes' },
  'a node is lost': { weight: 1, lasts: [0, 0] },
  'another session locks a row': { weight: 3, lasts: [500, 6_000] },
  'another session locks a table': { weight: 2, lasts: [200, 4_000] },
  'a limit is lowered': { weight: 3, lasts: [1_000, 5_000] },
  'PostgreSQL is read-only': { weight: 2, lasts: [200, 3_000] },
  'PostgreSQL fails over': { weight: 2, lasts: [500, 4_000] },
  'large tables are migrated': { weight: 1, lasts: [0, 0] },
  'Redis fails over': { weight: 2, lasts: [500, 4_000] },
  'a process gets other keys': { weight: 2, lasts: [0, 0] },
  'the connection to the cluster is forgotten': { weight: 2, lasts: [1_000, 8_000], only: 'kubernetes' },
  'the connection to the cluster is slow': { weight: 2, lasts: [1_000, 8_000], only: 'kubernetes' },
  'a network policy is removed': { weight: 2, lasts: [1_000, 6_000], only: 'kubernetes' },
  'a role loses a permission': { weight: 2, lasts: [1_000, 6_000], only: 'kubernetes' },
  'a role is removed': { weight: 2, lasts: [1_000, 6_000], only: 'kubernetes' },
  'a namespace loses its Pod Security level': { weight: 2, lasts: [1_000, 6_000], only: 'kubernetes' },
  'a credential of the cluster is replaced': { weight: 2, lasts: [0, 4_000], only: 'kubernetes' },
} satisfies Record<string, Kind>

export type FaultName = keyof typeof faultKinds

export interface Fault {
  number: number
  name: FaultName
  /** From 0 to 1. Selects a target. */
  target: number
  /** From 0 to 1. Selects a variant. */
  chance: number
  lastsMs: number
  /** Milliseconds before the next fault. */
  pauseMs: number
}

export function* scheduleOf(seed: number, driver: 'local' | 'kubernetes'): Generator<Fault> {
  const random = makeRandom(seed)
  const kinds = Object.entries<Kind>(faultKinds)
    .filter(([, { only = driver }]) => only === driver)
    .map(([name, kind]) => ({ name: name as FaultName, ...kind }))
  for (let number = 0; ; number++) {
    const { name, lasts } = pickWeighted(random, kinds)
    yield {
      number,
      name,
      target: random(),
      chance: random(),
      lastsMs: between(random, lasts[0], lasts[1]),
      pauseMs: between(random, 20, 400),
    }
  }
}
