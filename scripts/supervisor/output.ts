/** Prints the lines of all processes, each with its process's name in front. */
import type { Readable } from 'node:stream'
import { prettyLine } from './pretty.ts'

const colors = [36, 33, 32, 35, 34, 31]

/**
 * Makes logs readable on a terminal, and passes lines on unchanged elsewhere.
 * @returns what makes the function that prints the lines of the process of this name
 */
export function openOutput(names: string[], production: boolean) {
  const stream = process.stdout
  const readable = stream.isTTY === true && !production
  const colored = readable && !process.env.NO_COLOR
  const width = Math.max(...names.map((name) => name.length))
  // The reader is gone: the terminal or the pipe was closed.
  stream.on('error', () => {})
  return (name: string) => {
    const label = `${name.padEnd(width)} | `
    const color = colors[Math.max(names.indexOf(name), 0) % colors.length]
    const prefix = colored ? `\x1b[${color}m${label}\x1b[0m` : label
    return (line: string) => {
      const text = readable ? prettyLine(line, colored) : line
      stream.write(text.replace(/^/gm, () => prefix).concat('\n'))
    }
  }
}

/** Calls back for each line, the last one also when it has no end. */
export function eachLine(stream: Readable, print: (line: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) print(line)
  })
  stream.on('close', () => {
    if (rest !== '') print(rest)
  })
}
