/** Ids sort by creation time, and their prefix names their kind. */
import { randomUUID } from 'node:crypto'
import { ulid as freshUlid, monotonicFactory } from 'ulid'

const ulid = monotonicFactory()

/** Lower case, as names of pods must be. */
const idOf = (prefix: string) => `${prefix}_${ulid().toLowerCase()}`

export const newAccountId = () => idOf('acc')
export const newApiKeyId = () => idOf('key')
export const newSandboxId = () => idOf('sbx')
export const newWarmPodName = () => idOf('warm').replace('_', '-')
export const newSecretId = () => idOf('sec')
export const newExecId = () => idOf('exec')
export const newRequestId = () => `req_${randomUUID()}`
export const newWorkerId = () => idOf('wrk')

/** The name of a pod that is created for a sandbox: derived from its id, so that 409 and 404 mean "done". */
export const podName = (sandboxId: string): string => sandboxId.replace('_', '-')

/** The part of an id that is hashed to find its slot owner (shared/rpc/worker-registry.ts). */
export const hashKeyOf = (id: string) => id.slice(-hashKeyLength)
const hashKeyLength = 4

/** A new sandbox id with the hash key of a warm pod: the slot owner of the pod gets the sandbox. */
export const newSandboxIdLike = (podName: string) =>
  // Not a monotonic ULID: those of one millisecond differ only at their ends.
  `sbx_${freshUlid().toLowerCase().slice(0, -hashKeyLength)}${hashKeyOf(podName)}`
