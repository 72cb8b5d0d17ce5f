/** Maximum number of skipped entries that are reported by name. A sandbox can send any number of entries. */
const namedCount = 20
const maxLineLength = 400

export class Skipped {
  readonly lines: string[] = []
  count = 0

  add(name: string, reason: string): void {
    this.addLine(`${shorten(name)}: ${reason}`)
  }

  addLine(line: string): void {
    this.count++
    if (this.lines.length < namedCount) this.lines.push(line.slice(0, maxLineLength))
  }

  addError(name: string, error: unknown): void {
    const withoutPath = (error as Error).message.replace(/, \w+ (<Buffer|').*$/s, '')
    this.add(name, withoutPath)
  }
}

const shorten = (name: string): string => (name.length > 200 ? `${name.slice(0, 200)}…` : name)
