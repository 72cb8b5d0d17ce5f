/** Counts the current uses of each key, such as the open connections to each sandbox. */
export class OpenCounts {
  private readonly counts = new Map<string, number>()

  get keys(): string[] {
    return [...this.counts.keys()]
  }

  of(key: string): number {
    return this.counts.get(key) ?? 0
  }

  /** Counts a use of the key until its end. The caller must call the returned function once, at the end. */
  begin(key: string): () => void {
    this.counts.set(key, this.of(key) + 1)
    return () => {
      const left = this.of(key) - 1
      if (left > 0) this.counts.set(key, left)
      else this.counts.delete(key)
    }
  }
}
