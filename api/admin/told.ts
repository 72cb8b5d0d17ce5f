/** What a command of the operator tells. */
export interface Told {
  /** For programs: the object of --json. */
  value: object
  /** For people. */
  text: string
}

/** @param rows as many cells each as the first @returns their lines */
export function showColumns(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}
