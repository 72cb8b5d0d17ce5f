import { Online } from './online.ts'

/**
 * When a sandbox ran in a warm pod that died unused and was replaced: that time stays billed. Both columns are null
 * for all other rows, so PostgreSQL adds them without reading the table. Older code writes neither.
 */
export class FirstPod extends Online {
  override async up(): Promise<void> {
    await this.change(
      `alter table sandbox
         add column if not exists first_ready_at timestamptz(3),
         add column if not exists first_ended_at timestamptz(3)`,
    )
  }
}
