import { ulid } from 'ulid'
import { podName } from '../../shared/data/ids.ts'

export const newSandboxId = (): string => `sbx_${ulid().toLowerCase()}`

export const ofNobody = () => ({ name: `warm-${ulid().toLowerCase()}` })

export const ofSandbox = (sandboxId = newSandboxId()) => ({ name: podName(sandboxId), sandboxId })
