/** The interface of a world, which index.ts starts. */
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
  /** Number of API processes. Default 1. */
  apis?: number
  /** Number of worker processes. Default 1. */
  workers?: number
  /** Default `local`; with `kubernetes`, the world has a separate namespace. */
  driver?: 'local' | 'kubernetes'
  /** Settings of all processes, which override those of tests. */
  env?: Record<string, string>
  /** Starts a separate PostgreSQL server, which a test may stop. This takes half a second. */
  separatePostgres?: boolean
  /** The workers connect to the cluster through a relay. */
  wire?: boolean
}

export interface World extends ApiUrls, AsyncDisposable {
  settings: Settings
  /** A superuser's connection to the database. */
  db: Database
  redis: Redis
  apis: Process[]
  workers: Process[]
  /** The servers, to stop, kill, freeze and restart. */
  plugs: { redis: Plug; postgres: Plug | undefined }
  cluster: Cluster | undefined
  wire: Wire | undefined
  /** A folder that is deleted with the world. */
  folder: string
  /** Signs up and creates an API key. */
  account(options?: NewAccount): Promise<Account>
  startApi(env?: Record<string, string>): Promise<Process>
  startWorker(env?: Record<string, string>): Promise<Process>
  /** A worker that kills itself, as `kill -9` would, when it first reaches the crash point. */
  startDoomedWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  /** A worker that freezes, as by SIGSTOP, when it first reaches the crash point. Resolves before it does. */
  startFreezingWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  eventually: typeof eventually
}
