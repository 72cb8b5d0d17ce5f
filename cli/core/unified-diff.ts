/** Comparing large files could take minutes. */
const timeoutMs = 5_000

/** Returns an empty string after a timeout. */
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
