import { announceEveryMs, announceWorker, listWorkers } from '../../shared/rpc/worker-registry.ts'
import type { World } from './world.ts'

/** Goes on to list the workers there are, though they stand still for longer than a list lasts. */
export async function keepListed(world: World): Promise<Disposable> {
  const workers = await listWorkers(world)
  const timer = setInterval(() => {
    for (const { secret, ...entry } of workers) void announceWorker(world.redis, [secret], entry)
  }, announceEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
