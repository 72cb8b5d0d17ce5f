/** All migrations, oldest first. */
import type { Migration } from '@mikro-orm/migrations'
import { First } from './20261126_first.ts'

interface Runnable extends Migration {
  up(): Promise<void> | void
}

export interface Listed {
  name: string
  class: new (...args: ConstructorParameters<typeof Migration>) => Runnable
  /** Told to the operator when it begins: what it does. */
  does: string
}

export const migrationsList: Listed[] = [{ name: '20261126_first', class: First, does: 'creates all tables' }]
