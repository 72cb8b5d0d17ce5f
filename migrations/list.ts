import type { Migration } from '@mikro-orm/migrations'
import { First } from './20261126_first.ts'
import { ByName } from './20261127_by_name.ts'
import { ExecStart } from './20261127_exec_start.ts'
import { Idle } from './20261127_idle.ts'
import { Labels } from './20261127_labels.ts'
import { Lifetimes } from './20261127_lifetimes.ts'

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
  { name: '20261127_by_name', class: ByName, description: 'adding hashes of environments' },
  {
    name: '20261127_exec_start',
    class: ExecStart,
    description: 'adding the process IDs and start errors of commands',
  },
  { name: '20261127_idle', class: Idle, description: 'adding the idle timeouts of sandboxes' },
  { name: '20261127_labels', class: Labels, description: 'indexing sandboxes by metadata, name and image' },
  { name: '20261127_lifetimes', class: Lifetimes, description: 'adding the lifetimes of sandboxes' },
]
