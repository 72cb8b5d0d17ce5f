/** What a sandbox's row and its pod say together. */
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { PodDeath } from '../drivers/driver.ts'

/** When the start of its pod began. For a sandbox that is not ready, or was not before. */
export const startOf = ({ claim, pod_since, created_at }: SandboxRow): Date =>
  claim === 'replaced' && pod_since ? pod_since : created_at

/** Milliseconds by which a node's clock and PostgreSQL's may differ over the life of a sandbox. */
const clocksDifferMs = 5_000

/**
 * A pod's death as the end of its sandbox. Whether that counts as a failed start, the row decides (`endSandbox`). A
 * deadline that came before the cap was another than ours: somebody changed the pod.
 */
export function endOf(
  { reason, detail }: PodDeath,
  { expires_at }: Pick<SandboxRow, 'expires_at'>,
  now: Date,
) {
  const leftMs = expires_at.getTime() - now.getTime()
  if (reason === 'expired' && leftMs <= clocksDifferMs) return { reason, detail }
  const early = reason === 'expired' ? `: the pod ended ${Math.round(leftMs / 1000)} s before its cap` : ''
  return { reason: 'pod_failed' as const, detail: detail + early }
}
