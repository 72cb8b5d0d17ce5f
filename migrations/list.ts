import type { Migration } from '@mikro-orm/migrations'
import { First } from './20261126_first.ts'
import { Lifetimes } from './20261127_lifetimes.ts'

interface Runnable extends Migration {
  up(): Promise<void> | void
}

export interface ListedMigration {
  name: string
  class: new (...args: ConstructorParameters<typeof Migration>) => Runnable
  /** Description that is logged when the migration starts. */
  description: string
}

export const migrationsList: ListedMigration[] = [
  { name: '20261126_first', class: First, description: 'creating all tables' },
  { name: '20261127_lifetimes', class: Lifetimes, description: 'adding the lifetimes of sandboxes' },
]
