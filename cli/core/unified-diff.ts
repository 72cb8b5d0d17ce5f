/** Time limit for a comparison, which could take minutes for large files. */
const timeoutMs = 5_000

/** Returns a unified diff of two texts, or an empty string if the comparison times out. */
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
