/** Counts how many uses of each key are open, such as connections to each sandbox. */
export class OpenCounts {
  private readonly counts = new Map<string, number>()

  get keys(): string[] {
    return [...this.counts.keys()]
  }

  of(key: string): number {
    return this.counts.get(key) ?? 0
  }

  /** Counts a use of the key until the returned function is called, which must happen only once. */
  begin(key: string): () => void {
    this.counts.set(key, this.of(key) + 1)
    return () => {
      const left = this.of(key) - 1
      if (left > 0) this.counts.set(key, left)
      else this.counts.delete(key)
    }
  }
}
