/**
 * The registry of live workers. It is a Redis hash in which each worker renews its entry every second. Redis
 * is not trusted, so an entry is valid only if it is recent and signed under RPC_KEY.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Redis } from 'ioredis'
import { hashKeyOf } from '../data/ids.ts'
import type { Context } from '../platform/context.ts'
import type { Logger } from '../platform/log.ts'
import { deriveKey } from '../platform/seal.ts'

export interface WorkerEntry {
  id: string
  url: string
  /** Why the worker cannot create sandboxes. Null if it can create them. */
  driverProblem: string | null
  /** False if `driverProblem` is a misconfiguration, which only an operator can fix. */
  isSetUp?: boolean | undefined
  /** A draining worker accepts no new work, but keeps serving its running commands. */
  isDraining?: boolean | undefined
}

export interface ListedWorker extends WorkerEntry {
  /** The RPC_KEY that signed the worker's entry. The worker accepts calls under this key. */
  secret: string
}

export const announceEveryMs = 1_000
/**
 * How long an entry is kept after its last renewal. A worker that cannot reach Redis may still be alive, and
 * its address is needed for liveness checks.
 */
const keptMs = 3_600_000
/**
 * Maximum difference between an entry's signed timestamp and the local clock. An attacker who controls Redis
 * can replay an entry for this long, which only makes a dead worker appear alive: no other process can
 * respond to its RPCs (channel.ts).
 */
const replayMs = 60_000
const key = 'sandlot:workers'

const announceScript = `
  local t = redis.call('TIME')
  redis.call('HSET', KEYS[1], ARGV[1], (t[1] * 1000 + math.floor(t[2] / 1000)) .. ' ' .. ARGV[2])`

const listScript = `
  local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  local all, live = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #all, 2 do
    local space = string.find(all[i + 1], ' ', 1, true)
    local age = now - tonumber(string.sub(all[i + 1], 1, space - 1))
    if age > tonumber(ARGV[2]) then
      redis.call('HDEL', KEYS[1], all[i])
    elseif age <= tonumber(ARGV[1]) then
      live[#live + 1] = string.sub(all[i + 1], space + 1)
    end
  end
  return live`

/**
 * Renews a worker's registry entry. The entry is signed under every RPC_KEY, so that a reader needs only one
 * of them.
 */
export async function announceWorker(
  redis: Redis,
  secrets: readonly string[],
  entry: WorkerEntry,
): Promise<void> {
  const text = JSON.stringify({ ...entry, at: Date.now() })
  const signatures = secrets.map((secret) => sign(secret, text).toString('base64url'))
  await redis.eval(announceScript, 1, key, entry.id, `${signatures.join(',')} ${text}`)
}

export const withdrawWorker = async (redis: Redis, id: string): Promise<void> => {
  await redis.hdel(key, id)
}

/** Returns the live workers. Skips entries with an invalid signature or an old timestamp. */
export async function listWorkers({
  redis,
  settings,
  log,
}: Pick<Context, 'redis' | 'settings'> & { log?: Logger }): Promise<ListedWorker[]> {
  const entries = (await redis.eval(listScript, 1, key, settings.livenessTimeouts.stale, keptMs)) as string[]
  const now = Date.now()
  const listed = new Map<string, ListedWorker>()
  for (const entry of entries) {
    const read = readEntry(entry, settings.rpcKeys)
    if (read && Math.abs(now - read.at) < replayMs) listed.set(read.worker.id, read.worker)
    else if (log) warnOfForgery(log)
  }
  return [...listed.values()]
}

export async function findEntries(
  { redis, settings }: Pick<Context, 'redis' | 'settings'>,
  ids: readonly string[],
): Promise<ListedWorker[]> {
  if (ids.length === 0) return []
  const found = (await redis.hmget(key, ...ids)).filter((entry) => entry !== null)
  return found
    .map((entry) => readEntry(entry.slice(entry.indexOf(' ') + 1), settings.rpcKeys)?.worker)
    .filter((worker) => worker !== undefined)
}

const sign = (secret: string, text: string): Buffer =>
  createHmac('sha256', deriveKey(secret, 'sandlot worker entries')).update(text).digest()

/**
 * Verifies and parses a registry entry.
 * @returns undefined if no signature is valid; `at` is the signing time by the worker's clock
 */
function readEntry(
  entry: string,
  secrets: readonly string[],
): { worker: ListedWorker; at: number } | undefined {
  const space = entry.indexOf(' ')
  const text = entry.slice(space + 1)
  const signatures = entry.slice(0, Math.max(0, space)).split(',')
  const secret = secrets.find((candidate) => {
    const expected = sign(candidate, text)
    return signatures.some((signature) => isEqual(Buffer.from(signature, 'base64url'), expected))
  })
  if (secret === undefined) return undefined
  const { at, ...worker } = JSON.parse(text) as WorkerEntry & { at: number }
  return { worker: { ...worker, secret }, at }
}

const isEqual = (a: Buffer, b: Buffer) => a.length === b.length && timingSafeEqual(a, b)

const warnEveryMs = 60_000
let warnedAt = Number.NEGATIVE_INFINITY

function warnOfForgery(log: Logger) {
  if (performance.now() - warnedAt < warnEveryMs) return
  warnedAt = performance.now()
  log.warn(
    'ignoring a registry entry in Redis: it is not signed under RPC_KEY, or its clock differs by over a minute',
  )
}

export const takesCalls = ({ isDraining }: WorkerEntry): boolean => !isDraining

/**
 * Orders workers by rendezvous hashing, so that all processes agree on the first one: the slot owner, which
 * opens shells in the sandbox in advance. Hashes only the suffix of the ID, which a sandbox shares with the
 * warm pod that it claimed.
 * @param id a sandbox ID or the name of a warm pod
 */
export function inOrderFor<W extends WorkerEntry>(id: string, workers: W[]): W[] {
  const rank = (worker: W) =>
    (worker.driverProblem === null ? '0' : '1') +
    createHash('sha1')
      .update(`${worker.id} ${hashKeyOf(id)}`)
      .digest('hex')
  return workers
    .map((worker) => ({ worker, rank: rank(worker) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ worker }) => worker)
}
