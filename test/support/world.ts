/** What a test has in hand: see index.ts, which starts it. */
import type { Redis } from 'ioredis'
import type { Database } from '../../shared/data/database.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { CrashPoint } from '../../workers/faults/crash-points.ts'
import type { Account, ApiUrls, NewAccount } from './account.ts'
import type { Cluster } from './cluster.ts'
import type { eventually } from './eventually.ts'
import type { Process } from './process.ts'
import type { Plug } from './services.ts'
import type { Wire } from './wire.ts'

export interface WorldOptions {
  /** API processes; 1 unless told. */
  apis?: number
  /** Worker processes; 1 unless told. */
  workers?: number
  /** `local` unless told; `kubernetes` gets a namespace of its own. */
  driver?: 'local' | 'kubernetes'
  /** Settings of all processes, over those that make tests quick. */
  env?: Record<string, string>
  /** A PostgreSQL of only this world, which a test may stop; it takes half a second. */
  ownPostgres?: boolean
  /** The workers reach the cluster by a wire that can be cut. */
  wire?: boolean
}

export interface World extends ApiUrls, AsyncDisposable {
  settings: Settings
  /** Written to and read as a superuser, past the API. */
  db: Database
  redis: Redis
  apis: Process[]
  workers: Process[]
  /** The servers themselves, to stop, kill, freeze and start again. */
  plugs: { redis: Plug; postgres: Plug | undefined }
  cluster: Cluster | undefined
  wire: Wire | undefined
  /** A folder that goes with the world. */
  folder: string
  /** Signs up, makes an API key. */
  account(options?: NewAccount): Promise<Account>
  startApi(env?: Record<string, string>): Promise<Process>
  startWorker(env?: Record<string, string>): Promise<Process>
  /** A worker that kills itself, as `kill -9` would, when it first reaches the crash point. */
  startDoomedWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  /** A worker that freezes, as by SIGSTOP, when it first reaches the crash point. Resolves before it does. */
  startFreezingWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  eventually: typeof eventually
}
