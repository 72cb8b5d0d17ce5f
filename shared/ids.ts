/** Ids sort by the time they were made, and say what they are of. */
import { randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'

const ulid = monotonicFactory()

/** Lower case, so that a pod can be named after its sandbox. */
const idOf = (prefix: string) => `${prefix}_${ulid().toLowerCase()}`

export const newAccountId = () => idOf('acc')
export const newApiKeyId = () => idOf('key')
export const newSandboxId = () => idOf('sbx')
export const newSecretId = () => idOf('sec')
export const newExecId = () => idOf('exec')
export const newRequestId = () => `req_${randomUUID()}`
export const newWorkerId = () => idOf('wrk')
