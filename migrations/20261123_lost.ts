import { Migration } from '@mikro-orm/migrations'

/** Marks commands that clients were told are lost while they may still run. The sweep finds and ends them. */
export class Lost extends Migration {
  override up(): void {
    this.addSql(`alter table exec add column is_left boolean not null default false`)
    this.addSql(`create index exec_left on exec (worker_id) where is_left`)
  }
}
