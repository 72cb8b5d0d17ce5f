import { Migration } from '@mikro-orm/migrations'

/**
 * When a sandbox ran in a warm pod that died unused and was replaced: that time stays billed. Both columns are null
 * for all other rows, so PostgreSQL adds them without reading the table. Older code writes neither.
 */
export class FirstPod extends Migration {
  override up(): void {
    this.addSql(`
      alter table sandbox
        add column first_ready_at timestamptz(3),
        add column first_ended_at timestamptz(3)`)
  }
}
