import { Online } from './online.ts'

/** Adds idle timeouts for sandboxes, and the destroy reason `idle`. */
export class Idle extends Online {
  override async up(): Promise<void> {
    await this.change(
      `alter table sandbox
         add column if not exists idle_timeout_seconds int,
         -- When the sandbox was last in use. Recorded only for sandboxes with an idle timeout.
         add column if not exists active_at timestamptz(3)`,
    )
    await this.constrain(
      'sandbox',
      'sandbox_destroy_reasons_check',
      `check (destroy_reason in ('requested', 'expired', 'idle', 'start_failed', 'suspended', 'pod_failed'))`,
    )
    await this.change('alter table sandbox drop constraint if exists sandbox_destroy_reason_check')
  }
}
