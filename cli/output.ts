/** Where things are printed: data on stdout, everything else on stderr. */
import type { CliError } from './errors.ts'

export type Output = ReturnType<typeof createOutput>

export const createOutput = (json: boolean) => ({
  json,
  /** The result of the command: `value` with `--json`, else `text` as it is. */
  result(value: unknown, text: string | Uint8Array): void {
    process.stdout.write(json ? toJson(value) : text)
  },
  /** Something to know beside the result. */
  note(text: string): void {
    process.stderr.write(`${printable(text)}\n`)
  },
  /** Something to know that only a person at a terminal cares for. */
  aside(text: string): void {
    if (process.stderr.isTTY && !json) process.stderr.write(`${printable(text)}\n`)
  },
  /** Tells of a failure: on stderr always, and with `--json` on stdout as the one object of the run. */
  fail(error: CliError, exitCode: number): void {
    process.stderr.write(`${printable(errorText(error))}\n`)
    this.failSilently(error, exitCode)
  },
  failSilently(error: CliError, exitCode: number): void {
    if (json) process.stdout.write(toJson(errorValue(error, exitCode)))
  },
})

function errorText({ message, hint, details }: CliError): string {
  const request = typeof details.request_id === 'string' ? `(request ${details.request_id})` : undefined
  return [`sandlot: ${message}`, hint, request].filter((line) => line !== undefined).join('\n')
}

const errorValue = ({ code, message, hint, details }: CliError, exitCode: number) => ({
  error: { ...details, code, message, hint, exit_code: exitCode },
})

/** One line for programs, several for people. */
const toJson = (value: unknown): string =>
  `${JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined)}\n`

/** Keeps text that came from elsewhere from steering the terminal. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd')

/** Columns for a terminal, with a head; for programs, tabs between the fields and no head. */
export function table(head: string[], rows: string[][]): string {
  const clean = rows.map((row) => row.map((cell) => printable(cell).replace(/[\t\n]/g, ' ')))
  if (!process.stdout.isTTY) return clean.map((row) => `${row.join('\t')}\n`).join('')
  const widths = head.map((title, column) =>
    Math.max(title.length, ...clean.map((row) => row[column]?.length ?? 0)),
  )
  return [head, ...clean]
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** Lines of `name  value`, the values below each other. */
export function fields(entries: Record<string, string | undefined>): string {
  const lines = Object.entries(entries).filter(([, value]) => value !== undefined)
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${printable(value ?? '')}\n`).join('')
}
