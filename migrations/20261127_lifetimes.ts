import { Online } from './online.ts'

/** Stores how long the lifetime of a sandbox can be extended. */
export class Lifetimes extends Online {
  override async up(): Promise<void> {
    // The latest permitted expires_at, which is also the deadline of the pod. Null in rows of the previous version, whose
    // pods end at expires_at.
    await this.change('alter table sandbox add column if not exists max_expires_at timestamptz(3)')
  }
}
