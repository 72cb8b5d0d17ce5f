/** Large changes could take minutes to compare. */
const timeoutMs = 5_000

/** Loads its library only when it is called. @returns a unified diff; empty when it would take too long */
export async function unifiedDiff(
  oldName: string,
  newName: string,
  before: string,
  after: string,
): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff')
  const options = { headerOptions: FILE_HEADERS_ONLY, timeout: timeoutMs }
  return createTwoFilesPatch(oldName, newName, before, after, undefined, undefined, options) ?? ''
}
