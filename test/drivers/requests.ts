/** What a driver is asked for in tests. */
import { ulid } from 'ulid'
import { podName } from '../../shared/data/ids.ts'

export const newSandboxId = (): string => `sbx_${ulid().toLowerCase()}`

/** What a request says of a warm pod. */
export const ofNobody = () => ({ name: `warm-${ulid().toLowerCase()}` })

/** What a request says of a pod that is made for one sandbox. */
export const ofSandbox = (sandboxId = newSandboxId()) => ({ name: podName(sandboxId), sandboxId })
