/** Ids sort by creation time, and their prefix names their kind. */
import { randomUUID } from 'node:crypto'
import { ulid as freshUlid, monotonicFactory } from 'ulid'

const ulid = monotonicFactory()

/** Lowercase, because ids become names of pods. */
const idOf = (prefix: string) => `${prefix}_${ulid().toLowerCase()}`

export const newAccountId = () => idOf('acc')
export const newApiKeyId = () => idOf('key')
export const newSandboxId = () => idOf('sbx')
export const newWarmPodName = () => idOf('warm').replace('_', '-')
export const newSecretId = () => idOf('sec')
export const newExecId = () => idOf('exec')
export const newRequestId = () => `req_${randomUUID()}`
export const newWorkerId = () => idOf('wrk')

/** The name of a sandbox's own pod. Because it is derived from the id, 409 and 404 mean that the work is done. */
export const podName = (sandboxId: string): string => sandboxId.replace('_', '-')

/** The part of an id that is hashed to find its slot owner (shared/rpc/worker-registry.ts). */
export const hashKeyOf = (id: string) => id.slice(-hashKeyLength)
const hashKeyLength = 4

/** A new sandbox id with the same hash as the warm pod's, so that the worker that owns the pod's slots keeps them. */
export const newSandboxIdLike = (podName: string) =>
  // Monotonic ULIDs of one millisecond would differ only in the part that is replaced here.
  `sbx_${freshUlid().toLowerCase().slice(0, -hashKeyLength)}${hashKeyOf(podName)}`
