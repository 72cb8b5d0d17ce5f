/**
 * What is looked up of a process that may end meanwhile.
 * @returns undefined when it has ended: it has no file under /proc, or cannot be signalled
 */
export function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return undefined
  }
}
