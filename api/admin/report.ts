export interface Report {
  /** The object printed with `--json`. */
  value: object
  /** The text printed without `--json`. */
  text: string
  exitCode?: number
}

export function showColumns(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}
