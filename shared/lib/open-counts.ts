/** Counts the open uses of each key. */
export class OpenCounts {
  private readonly counts = new Map<string, number>()

  get keys(): string[] {
    return [...this.counts.keys()]
  }

  of(key: string): number {
    return this.counts.get(key) ?? 0
  }

  /** Begins a use of the key. Returns a function that ends the use and must be called only once. */
  begin(key: string): () => void {
    this.counts.set(key, this.of(key) + 1)
    return () => {
      const left = this.of(key) - 1
      if (left > 0) this.counts.set(key, left)
      else this.counts.delete(key)
    }
  }
}
