/** Maximum time for a comparison, in milliseconds. Comparing large files could take minutes. */
const timeoutMs = 5_000

/** Returns a unified diff, or an empty string after a timeout. Loads the diff library on demand. */
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
