export type Resource = 'processes' | 'memory' | 'disk'

/**
 * Error messages that show which resource has run out. Memory and disk come first, because a fork can also
 * fail when either has run out.
 */
const patterns: [RegExp, Resource][] = [
  [/ENOMEM|Cannot allocate memory/i, 'memory'],
  [/ENOSPC|EDQUOT|No space left|Disk quota exceeded/i, 'disk'],
  [/EAGAIN|Resource temporarily unavailable|can(no|')t fork|pthread_create|new OS thread/i, 'processes'],
]

export const usedUpBy = (message: string): Resource | undefined =>
  patterns.find(([pattern]) => pattern.test(message))?.[1]

/**
 * Whether an error message shows that runc's own process died in the pod. runc starts several threads, so it
 * can exceed the pod's process limit even if there is still room for a shell.
 */
export const endedRuntime = (message: string): boolean => /read init-p: connection reset/.test(message)
