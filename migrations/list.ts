import type { Migration } from '@mikro-orm/migrations'
import { First } from './20261126_first.ts'

interface Runnable extends Migration {
  up(): Promise<void> | void
}

export interface ListedMigration {
  name: string
  class: new (...args: ConstructorParameters<typeof Migration>) => Runnable
  description: string
}

export const migrationsList: ListedMigration[] = [
  { name: '20261126_first', class: First, description: 'creating all tables' },
]
