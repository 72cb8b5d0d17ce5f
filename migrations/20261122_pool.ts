import { Online } from './online.ts'

/**
 * Warm pods, and sandboxes whose pod is not named after them. Older code makes no warm pods and claims none, but its
 * workers would end a sandbox that has one. So set WARM_POOL_SIZE and WARM_POOLS only when the last old worker is gone.
 */
export class Pool extends Online {
  override async up(): Promise<void> {
    await this.change(`
      alter table sandbox
        -- Null where the version before wrote the row: its pod is named after it.
        add column if not exists pod_name text,
        -- When its pod was asked for, where that was not at its admission.
        add column if not exists pod_since timestamptz(3),
        -- Null for a pod that was made for it. A warm pod that dies unused is replaced by such a one.
        add column if not exists claim text`)
    await this.constrain('sandbox', 'sandbox_claim_check', `check (claim in ('unused', 'used', 'replaced'))`)
    // No two sandboxes have one pod. The index also finds whose an unknown pod is.
    await this.index('sandbox_pod', 'on sandbox (pod_name) where reaped_at is null', 'unique index')

    // The refill waits for sandboxes that are starting.
    await this.index(
      'sandbox_starting',
      'on sandbox (created_at) where ready_at is null and destroyed_at is null',
    )

    // A pod that nobody owns. Its row is deleted in the transaction that gives it to a sandbox, or before the pod is
    // deleted. So what has a row was never anybody's.
    await this.change(`
      create table if not exists warm_pod (
        name text primary key,
        image text not null,
        -- All that settings make of its manifest, as a hash.
        fingerprint text not null,
        -- Before the pod is: its own deadline cannot come sooner than ends_at.
        born_at timestamptz(3) not null,
        ends_at timestamptz(3) not null,
        -- When the first command could have run in it: from then on it can be claimed.
        ready_at timestamptz(3),
        uid text,
        check (born_at < ends_at),
        check ((ready_at is null) = (uid is null))
      )`)
    await this.index('warm_pod_ready', 'on warm_pod (image, born_at) where ready_at is not null')
  }
}
