/** Prints data to stdout and everything else to stderr. */
import { styleText } from 'node:util'
import { shellWord } from '../../shared/contract/shell-words.ts'
import type { RequestTrace } from './api.ts'
import { type ColorChoice, canAnimate, wantsColor } from './drawing.ts'
import type { CliError } from './errors.ts'
import { type JsonShape, pick } from './json-fields.ts'
import { printable, printableJson, unbroken } from './printable.ts'
import { noProgress, type Progress, showProgress } from './progress.ts'
import { table } from './table.ts'

export type Output = ReturnType<typeof createOutput>

export interface OutputOptions {
  /** Whether to print one JSON object, limited to `fields` if set. */
  json?: boolean
  fields?: string[] | undefined
  shape?: JsonShape | undefined
  /** Whether to omit notes, and to print only the ids of listed items. */
  quiet?: boolean
  color?: ColorChoice | undefined
}

type Style = Parameters<typeof styleText>[0]

export function createOutput({ json = false, fields, shape, quiet = false, color }: OutputOptions) {
  let progress = noProgress
  const paint = (stream: NodeJS.WriteStream, style: Style, text: string) =>
    wantsColor(stream, color) ? styleText(style, text, { validateStream: false }) : text
  const writeNote = (text: string) => {
    progress.clear()
    process.stderr.write(`${text}\n`)
  }
  const write = (value: unknown, text: string | Uint8Array) => {
    progress.clear()
    const shown = json && fields !== undefined ? pick(value, fields, shape) : value
    process.stdout.write(json ? toJson(shown) : text)
  }
  return {
    json,
    quiet,
    shows: (field: string): boolean =>
      fields === undefined || fields.some((path) => path.split('.', 1)[0] === field),
    /** Prints `value` with --json, and `text` otherwise. Neutralizes control characters on a terminal. */
    result(value: unknown, text: string | Uint8Array): void {
      write(value, process.stdout.isTTY ? printable(Buffer.from(text).toString()) : text)
    },
    table(value: unknown, head: string[], rows: string[][], spare?: string[]): void {
      // `table` has already neutralized control characters.
      write(
        value,
        table(head, rows, (text) => paint(process.stdout, 'bold', text), spare),
      )
    },
    list(value: { next_cursor: string | null }, head: string[], rows: string[][], spare?: string[]): void {
      if (quiet) this.result(value, rows.map(([id]) => `${id}\n`).join(''))
      else this.table(value, head, rows, spare)
      if (value.next_cursor !== null)
        this.note(`The list continues: use --cursor ${shellWord(value.next_cursor)}`)
    },
    note(text: string): void {
      if (!quiet) writeNote(printable(text))
    },
    aside(text: string): void {
      if (process.stderr.isTTY && !json && !quiet) writeNote(paint(process.stderr, 'dim', printable(text)))
    },
    progress(text: string): Progress {
      progress = !json && !quiet && canAnimate() ? showProgress(text) : noProgress
      return progress
    },
    trace({ method, path, status, ms, requestId, problem }: RequestTrace): void {
      const parts = [method, path, status ?? problem, `${Math.round(ms)} ms`, requestId ?? '']
      writeNote(paint(process.stderr, 'dim', printable(`debug: ${parts.join(' ')}`.trimEnd())))
    },
    /** Prints an error to stderr and, with --json, also as an object to stdout. */
    fail(error: CliError, exitCode: number): void {
      const { message, hint, details } = error
      const lines = [`${paint(process.stderr, 'red', 'sandlot:')} ${printable(message)}`]
      if (hint !== undefined) lines.push(printable(hint))
      if (typeof details.request_id === 'string')
        lines.push(paint(process.stderr, 'dim', printable(`(request ${details.request_id})`)))
      writeNote(lines.join('\n'))
      this.failSilently(error, exitCode)
    },
    failSilently(error: CliError, exitCode: number): void {
      const { code, message, hint, details } = error
      const shown = { error: { ...details, code, message, hint, exit_code: exitCode } }
      if (json) process.stdout.write(toJson(shown))
    },
  }
}

const toJson = (value: unknown): string =>
  process.stdout.isTTY ? `${printableJson(JSON.stringify(value, null, 2))}\n` : `${JSON.stringify(value)}\n`

/** Formats each entry as a line with its name and value, and aligns the values. */
export function fields(entries: Record<string, string | undefined>): string {
  const lines = Object.entries(entries).filter(([, value]) => value !== undefined)
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${unbroken(value ?? '')}\n`).join('')
}
