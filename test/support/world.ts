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
  apis?: number
  workers?: number
  /** With `kubernetes`, the world has its own namespace. */
  driver?: 'local' | 'kubernetes'
  /** Overrides the test settings of all processes. */
  env?: Record<string, string>
  /** Starts a separate PostgreSQL that tests may stop. Takes half a second. */
  separatePostgres?: boolean
  /** Connects workers to the cluster through a relay. */
  wire?: boolean
}

export interface World extends ApiUrls, AsyncDisposable {
  settings: Settings
  /** Connects as a superuser. */
  db: Database
  redis: Redis
  apis: Process[]
  workers: Process[]
  /** Servers to stop, kill, freeze and restart. */
  plugs: { redis: Plug; postgres: Plug | undefined }
  cluster: Cluster | undefined
  wire: Wire | undefined
  folder: string
  account(options?: NewAccount): Promise<Account>
  startApi(env?: Record<string, string>): Promise<Process>
  startWorker(env?: Record<string, string>): Promise<Process>
  /** Starts a worker that kills itself with SIGKILL when it first reaches the crash point. */
  startDoomedWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  /** Starts a worker that freezes itself with SIGSTOP at the crash point. Resolves before the freeze. */
  startFreezingWorker(point: CrashPoint, env?: Record<string, string>): Promise<Process>
  eventually: typeof eventually
}
