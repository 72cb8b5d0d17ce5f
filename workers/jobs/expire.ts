import { findSandbox } from '../../shared/data/sandboxes.ts'
import { readClock } from '../pods/sandbox-rows.ts'
import { endAndDelete } from './end-and-delete.ts'
import type { Processor } from './processor.ts'

/** Ends a sandbox that reached its cap. */
export const expire: Processor<'expire'> = async ({ sandboxId }, worker) => {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // Redis' clock may run ahead of PostgreSQL's, and only PostgreSQL's counts.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  await endAndDelete(worker, sandboxId, 'expired', null, () =>
    worker.reach('expire: the row is ended, the pod lives'),
  )
}
