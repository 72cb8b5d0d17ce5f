/**
 * Which workers are there, where, and whether they reach the cluster: a hash in Redis in which
 * each worker renews its entry every second, on Redis's own clock.
 */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { placeOf } from './ids.ts'

export interface WorkerEntry {
  id: string
  /** Base address of its internal server. */
  url: string
  /** Why it cannot reach what runs the pods; null when it can. */
  driverProblem: string | null
  /** It is ending: it takes nothing new, and is there for what it has until that is done. */
  isDraining?: boolean | undefined
}

export const announceEveryMs = 1_000
/**
 * An entry older than this is of a worker that died. One that died a moment ago refuses connections,
 * so waiting longer costs nothing, and a busy machine may delay a living one.
 */
const staleMs = 6_000
const key = 'sandlot:workers'

const announceScript = `
  local t = redis.call('TIME')
  redis.call('HSET', KEYS[1], ARGV[1], (t[1] * 1000 + math.floor(t[2] / 1000)) .. ' ' .. ARGV[2])`

const listScript = `
  local t = redis.call('TIME')
  local oldest = t[1] * 1000 + math.floor(t[2] / 1000) - ARGV[1]
  local all, live = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #all, 2 do
    local space = string.find(all[i + 1], ' ', 1, true)
    if tonumber(string.sub(all[i + 1], 1, space - 1)) < oldest then
      redis.call('HDEL', KEYS[1], all[i])
    else
      live[#live + 1] = string.sub(all[i + 1], space + 1)
    end
  end
  return live`

export const announceWorker = async (redis: Redis, entry: WorkerEntry): Promise<void> => {
  await redis.eval(announceScript, 1, key, entry.id, JSON.stringify(entry))
}

export const withdrawWorker = async (redis: Redis, id: string): Promise<void> => {
  await redis.hdel(key, id)
}

export async function listWorkers(redis: Redis): Promise<WorkerEntry[]> {
  const entries = (await redis.eval(listScript, 1, key, staleMs)) as string[]
  return entries.map((text) => JSON.parse(text) as WorkerEntry)
}

/** Whether new work may be sent to it. */
export const takesCalls = ({ isDraining }: WorkerEntry): boolean => !isDraining

/**
 * Rendezvous hashing: everybody puts the workers of one sandbox in the same order without asking.
 * The first one holds it: it gets its commands, and opens slots for it ahead of time. What counts is the
 * end of an id alone, which a sandbox has in common with the warm pod it claimed.
 * @param id a sandbox's, or the name of a warm pod
 */
export function inOrderFor(id: string, workers: WorkerEntry[]): WorkerEntry[] {
  const rank = (worker: WorkerEntry) =>
    (worker.driverProblem === null ? '0' : '1') +
    createHash('sha1')
      .update(`${worker.id} ${placeOf(id)}`)
      .digest('hex')
  return workers
    .map((worker) => ({ worker, rank: rank(worker) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ worker }) => worker)
}
