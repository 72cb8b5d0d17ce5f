/**
 * Collects skipped entries: names the first ones and counts the rest, because a sandbox may send any number.
 */
const namedCount = 20
const maxLineLength = 400

export class Skipped {
  readonly lines: string[] = []
  count = 0

  /** @param name untrusted, of any length */
  add(name: string, reason: string): void {
    this.addLine(`${shorten(name)}: ${reason}`)
  }

  addLine(line: string): void {
    this.count++
    if (this.lines.length < namedCount) this.lines.push(line.slice(0, maxLineLength))
  }

  addError(name: string, error: unknown): void {
    this.add(name, reasonOf(error))
  }
}

const shorten = (name: string): string => (name.length > 200 ? `${name.slice(0, 200)}…` : name)

/** Removes the path from Node's message. */
const reasonOf = (error: unknown): string => (error as Error).message.replace(/, \w+ (<Buffer|').*$/s, '')
