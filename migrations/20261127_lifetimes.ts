import { Online } from './online.ts'

/** Adds the latest time to which a sandbox's lifetime can be extended. */
export class Lifetimes extends Online {
  override async up(): Promise<void> {
    // The latest permitted expires_at, which is also the pod's deadline. Null in rows from the previous
    // version, whose pods end at expires_at.
    await this.change('alter table sandbox add column if not exists max_expires_at timestamptz(3)')
  }
}
