import { announceEveryMs, announceWorker, listWorkers } from '../../shared/rpc/worker-registry.ts'
import type { World } from './world.ts'

/** Keeps frozen workers registered after their lease has expired. */
export async function keepListed(world: World): Promise<Disposable> {
  const workers = await listWorkers(world)
  const timer = setInterval(() => {
    for (const { secret, ...entry } of workers) void announceWorker(world.redis, [secret], entry)
  }, announceEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
