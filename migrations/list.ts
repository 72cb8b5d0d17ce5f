/** All migrations, oldest first. */
import type { Migration } from '@mikro-orm/migrations'
import { Exec } from './20261121_exec.ts'
import { First } from './20261121_first.ts'
import { Growth } from './20261121_growth.ts'
import { Policies } from './20261121_policies.ts'
import { Pool } from './20261122_pool.ts'
import { Lost } from './20261123_lost.ts'
import { Credentials } from './20261124_credentials.ts'
import { Past } from './20261125_past.ts'
import { FirstPod } from './20261126_first_pod.ts'
import { Usage } from './20261126_usage.ts'
import { Sweep } from './20261127_sweep.ts'

interface Runnable extends Migration {
  up(): Promise<void> | void
}

export interface Listed {
  name: string
  class: new (...args: ConstructorParameters<typeof Migration>) => Runnable
  /** Told to the operator when it begins: what it does. */
  does: string
}

export const migrationsList: Listed[] = [
  { name: '20261121_first', class: First, does: 'makes accounts, API keys and sandboxes' },
  { name: '20261121_exec', class: Exec, does: 'makes commands' },
  {
    name: '20261121_policies',
    class: Policies,
    does: 'makes allowlists, secrets and limits of an account’s own',
  },
  {
    name: '20261121_growth',
    class: Growth,
    does: 'makes indexes on sandboxes, idempotency keys and API keys',
  },
  { name: '20261122_pool', class: Pool, does: 'makes warm pods, and adds pods to sandboxes' },
  { name: '20261123_lost', class: Lost, does: 'marks commands that may still run after they were told lost' },
  { name: '20261124_credentials', class: Credentials, does: 'adds scopes of API keys, and ends of sessions' },
  { name: '20261125_past', class: Past, does: 'deletes environments of sandboxes that have ended' },
  {
    name: '20261126_first_pod',
    class: FirstPod,
    does: 'adds when a sandbox ran in a warm pod that died unused',
  },
  { name: '20261126_usage', class: Usage, does: 'adds usage by day, and lifetimes of replaced API keys' },
  { name: '20261127_sweep', class: Sweep, does: 'adds when the sweep was last taken' },
]
