export class PersistentTasks {
  private readonly pending = new Set<Promise<unknown>>()
  private readonly retryMs: number
  private readonly onError: (error: unknown, name: string) => void
  isClosed = false

  constructor(retryMs: number, onError: (error: unknown, name: string) => void) {
    this.retryMs = retryMs
    this.onError = onError
  }

  /**
   * Runs a task, and retries it until an attempt succeeds. After {@link close}, failed tasks are not retried,
   * and their promises never settle.
   */
  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const running = this.repeat(name, task)
    this.pending.add(running)
    return await running.finally(() => this.pending.delete(running))
  }

  async idle(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending)
  }

  close(): void {
    this.isClosed = true
  }

  private async repeat<T>(name: string, task: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await task()
      } catch (error) {
        this.onError(error, name)
      }
      await new Promise((resolve) => setTimeout(resolve, this.retryMs).unref())
      if (this.isClosed) await new Promise(() => {})
    }
  }
}
