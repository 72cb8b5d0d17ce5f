/** What a pod has used up, read from the words of kernels, shells and container runtimes. */

export type Resource = 'processes' | 'memory' | 'disk'

/** The cause comes before the fork that failed for it. */
const signs: [RegExp, Resource][] = [
  [/ENOMEM|Cannot allocate memory/i, 'memory'],
  [/ENOSPC|EDQUOT|No space left|Disk quota exceeded/i, 'disk'],
  [/EAGAIN|Resource temporarily unavailable|can(no|')t fork|pthread_create|new OS thread/i, 'processes'],
]

export const usedUpBy = (words: string): Resource | undefined => signs.find(([sign]) => sign.test(words))?.[1]

/**
 * Whether runc's own process died in the pod. It starts some threads there, so a pod may lack room for it that still has
 * room for a shell.
 */
export const endedRuntime = (words: string): boolean => /read init-p: connection reset/.test(words)
