/**
 * Maximum number of skipped entries listed by name. Limited, because a sandbox can send any number of
 * entries.
 */
const namedCount = 20
const maxLineLength = 400

export class Skipped {
  readonly lines: string[] = []
  count = 0

  /** @param name untrusted, and of any length */
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

/** Node's error message without the path. */
const reasonOf = (error: unknown): string => (error as Error).message.replace(/, \w+ (<Buffer|').*$/s, '')
