/** What the gate makes of files that failed: they run once more, alone. */

/** @typedef {import('./vitest.mjs').FileResult} FileResult */
/** @typedef {import('./vitest.mjs').Run} Run */

/** More than this is no accident. */
const mostFiles = 5

/**
 * @param {Run} first
 * @returns {FileResult[]} the files that run once more; none where that could not turn the result
 */
export function filesToTryAgain({ files, strays }) {
  const failed = files.filter(hasFailed)
  // An error that belongs to no file would not be tried again with any.
  return failed.length > mostFiles || strays > 0 ? [] : failed
}

/**
 * @param {FileResult[]} failed the files of {@link filesToTryAgain}
 * @param {Run} second what came of them, alone
 * @param {string[]} changed the files that the commit changes
 * @returns {{ lines: string[], results: FileResult[] }} what is to be printed, failures last, and what counts of each
 */
export function judge(failed, second, changed) {
  const flaky = []
  const lost = []
  const results = failed.map((before) => {
    const tell = (lines, word, { file, failures }, what) =>
      lines.push(...failures.map((failure) => `${word}: ${file} > ${failure}, ${what}`))
    const after = second.files.find(({ file }) => file === before.file)
    if (!after) {
      tell(lost, 'FAILED', before, 'and did not run again')
      return before
    }
    if (hasFailed(after)) {
      tell(lost, 'FAILED', after, 'alone too')
      return after
    }
    tell(flaky, 'flaky', before, 'passed alone')
    if (!changed.includes(before.file)) return after
    tell(lost, 'FAILED', before, 'in a file that this commit changes')
    return before
  })
  return { lines: [...flaky, ...lost], results }
}

const hasFailed = ({ failures }) => failures.length > 0
