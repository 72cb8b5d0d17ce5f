import type { DestroyReason, Sandbox } from '../../shared/contract/sandboxes.ts'

const reasons: Record<DestroyReason, string> = {
  requested: 'it was destroyed on request',
  expired: 'its TTL has expired',
  idle: 'its idle timeout has expired',
  start_failed: 'it could not be started',
  suspended: 'the account was suspended',
  pod_failed: 'its pod failed',
}

/** Describes why a session was destroyed. Returns an unknown reason unchanged. */
export const describeDestroyReason = ({ destroy_reason: reason }: Pick<Sandbox, 'destroy_reason'>): string =>
  reason === null ? 'the reason is unknown' : (reasons[reason] ?? reason)

/** If the command was killed because its session ended, returns why the session ended. */
export function destroyReasonOf(command: { status: string; reason?: string | null }): string | undefined {
  const { status, reason } = command
  if (status !== 'killed' || !reason || !Object.hasOwn(reasons, reason)) return undefined
  return reasons[reason as DestroyReason]
}
