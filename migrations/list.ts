/** All migrations, oldest first. */
import type { Migration } from '@mikro-orm/migrations'
import { First } from './20261121_first.ts'
import { Growth } from './20261121_growth.ts'
import { Lost } from './20261123_lost.ts'
import { Past } from './20261125_past.ts'

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
  { name: '20261121_first', class: First, does: 'makes the tables' },
  {
    name: '20261121_growth',
    class: Growth,
    does: 'makes indexes on sandboxes, idempotency keys and API keys',
  },
  { name: '20261123_lost', class: Lost, does: 'marks commands that may still run after they were told lost' },
  { name: '20261125_past', class: Past, does: 'deletes environments of sandboxes that have ended' },
]
