/** Prefixes each output line with the process's name. */
import { prettyFactory } from 'pino-pretty'

const colors = [36, 33, 32, 35, 34, 31]

/**
 * Returns a function that takes the name of a process and returns a function that prints a line of its
 * output. On a terminal, JSON logs are formatted for reading unless `production` is true.
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
