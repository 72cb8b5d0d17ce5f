import { Online } from './online.ts'

/** When a worker last took the sweep, so that one does it at a time. Older workers hold an advisory lock meanwhile. */
export class Sweep extends Online {
  override async up(): Promise<void> {
    await this.change('alter table installation add column if not exists swept_at timestamptz(3)')
  }
}
