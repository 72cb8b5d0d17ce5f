/** Why sessions end, in words. */
import type { DestroyReason, Sandbox } from '../../shared/contract/sandboxes.ts'

const reasons: Record<DestroyReason, string> = {
  requested: 'it was destroyed on request',
  expired: 'its time was up',
  start_failed: 'it could not be started',
  suspended: 'the account was suspended',
  pod_failed: 'its machine failed',
}

/** Why a session ended; the word itself of a service that knows more of them. */
export const endOf = ({ destroy_reason: reason }: Pick<Sandbox, 'destroy_reason'>): string =>
  reason === null ? 'no reason is known' : (reasons[reason] ?? reason)

/** Why the session ended that took a command along; undefined where something else has ended the command. */
export const endOfItsSession = ({
  status,
  reason = null,
}: {
  status: string
  reason?: string | null
}): string | undefined =>
  status === 'killed' && reason !== null && Object.hasOwn(reasons, reason)
    ? reasons[reason as DestroyReason]
    : undefined
