/**
 * Reads or signals a process that may exit at any time.
 * @returns undefined if the process has exited
 */
export function unlessGone<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return undefined
  }
}
