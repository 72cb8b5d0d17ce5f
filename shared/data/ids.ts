import { randomInt, randomUUID } from 'node:crypto'
import { encodeTime, ulid as freshUlid, monotonicFactory } from 'ulid'

/**
 * Random number generator for IDs. `randomInt` caches random bytes. The default generator of `ulid` does not,
 * and takes 80 µs per ID.
 */
const random = () => randomInt(32) / 32
const ulid = monotonicFactory(random)

/** Returns a new ID. IDs are lowercase, because pod names must be. */
const idOf = (prefix: string) => `${prefix}_${ulid().toLowerCase()}`

export const newAccountId = () => idOf('acc')
export const newApiKeyId = () => idOf('key')
export const newSandboxId = () => idOf('sbx')
export const newWarmPodName = () => idOf('warm').replace('_', '-')
export const newSecretId = () => idOf('sec')
export const newExecId = () => idOf('exec')
export const newRequestId = () => `req_${randomUUID()}`
export const newWorkerId = () => idOf('wrk')

/**
 * Derives the name of a sandbox's pod from the sandbox ID. A 409 on create or a 404 on delete therefore means
 * that an earlier attempt succeeded.
 */
export const podName = (sandboxId: string): string => sandboxId.replace('_', '-')

/**
 * Returns the suffix of a sandbox ID or pod name. It determines which worker owns the pod's slots, the shells
 * that wait in the pod for commands (shared/rpc/worker-registry.ts).
 */
export const hashKeyOf = (id: string) => id.slice(-hashKeyLength)
const hashKeyLength = 4

/**
 * Returns an ID for the sandbox that claims a warm pod. It ends like the pod's name ({@link hashKeyOf}), so
 * that the pod's slots stay with the same worker.
 */
export const newSandboxIdLike = (podName: string) =>
  // Monotonic ULIDs from the same millisecond would differ only in the characters that are replaced here.
  `sbx_${freshUlid(undefined, random).toLowerCase().slice(0, -hashKeyLength)}${hashKeyOf(podName)}`

/** Sorts after the IDs of all sandboxes. */
export const lastSandboxId = 'sbx_z'

/**
 * Maximum difference between PostgreSQL's clock and the clock of an API process, which determines the time in
 * an ID.
 */
const maxClockSkewMs = 3_600_000

/** Returns an ID that sorts before the ID of every sandbox created at or after an RFC 3339 time. */
export const sandboxIdBefore = (time: string): string =>
  `sbx_${encodeTime(Date.parse(time) - maxClockSkewMs).toLowerCase()}`
