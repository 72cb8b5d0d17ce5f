/**
 * Reads or signals a process that may exit at any time.
 * @returns undefined when it has exited: it has no file under /proc, or cannot be signalled
 */
export function unlessGone<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return undefined
  }
}
