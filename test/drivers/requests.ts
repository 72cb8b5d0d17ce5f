/** Requests to drivers in tests. */
import { ulid } from 'ulid'
import { podName } from '../../shared/data/ids.ts'

export const newSandboxId = (): string => `sbx_${ulid().toLowerCase()}`

/** The request for a warm pod. */
export const ofNobody = () => ({ name: `warm-${ulid().toLowerCase()}` })

/** The request for a pod of one sandbox. */
export const ofSandbox = (sandboxId = newSandboxId()) => ({ name: podName(sandboxId), sandboxId })
