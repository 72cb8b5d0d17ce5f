/** Prefixes each output line with the process's name. */
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { prettyFactory } from 'pino-pretty'

const colors = [36, 33, 32, 35, 34, 31]

/**
 * Formats logs on a terminal, unless NODE_ENV is `production`.
 * @returns a function that takes a process's name and returns a line printer
 */
export function openOutput(names: string[], production: boolean) {
  const stream = process.stdout
  const isReadable = stream.isTTY === true && !production
  const isColored = isReadable && !process.env.NO_COLOR
  const prettify = prettyFactory({
    colorize: isColored,
    ignore: 'pid,hostname,role',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
  const width = Math.max(...names.map((name) => name.length))
  // The terminal or pipe may be closed.
  stream.on('error', () => {})
  return (name: string) => {
    const label = `${name.padEnd(width)} | `
    const color = colors[Math.max(names.indexOf(name), 0) % colors.length]
    const prefix = isColored ? `\x1b[${color}m${label}\x1b[0m` : label
    return (line: string) => {
      const text = isReadable ? prettify(line).trimEnd() : line
      stream.write(text.replace(/^/gm, () => prefix).concat('\n'))
    }
  }
}

/** Calls `print` for each line, including an incomplete last line. */
export function eachLine(stream: Readable, print: (line: string) => void): void {
  createInterface({ input: stream }).on('line', print)
}
