import { Online } from './online.ts'

/** Marks commands that clients were told are lost while they may still run. The sweep finds and ends them. */
export class Lost extends Online {
  override async up(): Promise<void> {
    await this.change(`alter table exec add column if not exists is_left boolean not null default false`)
    await this.index('exec_left', 'on exec (worker_id) where is_left')
  }
}
