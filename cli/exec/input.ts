import { fstatSync, readFileSync, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { withTimeout } from '../../shared/lib/timeout.ts'

export class Input {
  isClosed = false
  byteCount = 0
  private readonly source: Readable
  private readonly chunks: AsyncIterator<Buffer>
  /** Chunks that `whole` has read but `pull` has not yet returned. */
  private readonly early: Buffer[] = []
  private asked: Promise<IteratorResult<Buffer>> | undefined

  constructor(source: Readable) {
    this.source = source
    this.chunks = source[Symbol.asyncIterator]()
  }

  /**
   * Returns the next chunk, `end` after the last chunk, or `late` if no chunk arrives within `maxMs`. After
   * `late`, the next call continues to wait for that chunk.
   */
  async pull(maxMs?: number): Promise<Buffer | 'late' | 'end'> {
    return this.early.shift() ?? (await this.next(maxMs))
  }

  /**
   * Returns the whole input if it ends within both limits. Otherwise returns undefined, and `pull` returns
   * the chunks that have been read.
   */
  async whole(maxBytes: number, maxMs: number): Promise<Buffer | undefined> {
    const end = performance.now() + maxMs
    for (let size = 0; size <= maxBytes; ) {
      const chunk = await this.next(Math.max(0, end - performance.now()))
      if (chunk === 'end') return Buffer.concat(this.early)
      if (chunk === 'late') return undefined
      this.early.push(chunk)
      size += chunk.length
    }
    return undefined
  }

  close(): void {
    this.isClosed = true
    this.source.destroy()
  }

  private async next(maxMs: number | undefined): Promise<Buffer | 'late' | 'end'> {
    // A closed stdin counts as ended.
    this.asked ??= this.chunks.next().catch(() => ({ done: true, value: undefined }))
    const next =
      maxMs === undefined ? await this.asked : await withTimeout(maxMs, this.asked, () => 'late' as const)
    if (next === 'late') return 'late'
    if (next.done) return 'end'
    this.asked = undefined
    this.byteCount += next.value.length
    return next.value
  }
}

/** Warns if the client has read stdin that a surrounding `while read` loop or script still needed. */
export function noteSharedStdin({ byteCount }: Input, advice: string, note: (text: string) => void): void {
  if (byteCount === 0 || !isSharedWithShell()) return
  const bytes = byteCount === 1 ? '1 byte' : `${byteCount} bytes`
  note(`sandlot: the command received ${bytes} of stdin that belong to the surrounding shell. ${advice}`)
}

const shells = /^((ba|da|a|k|mk|z|fi)?sh|busybox)$/

/** True if an ancestor process is a shell with the same stdin. Always false without /proc, as on macOS. */
function isSharedWithShell(): boolean {
  try {
    const own = fstatSync(0)
    for (let pid = process.ppid; pid > 1; ) {
      const { dev, ino } = statSync(`/proc/${pid}/fd/0`)
      if (dev !== own.dev || ino !== own.ino) return false
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      if (shells.test(/^Name:\t(.*)$/m.exec(status)?.[1] ?? '')) return true
      pid = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1])
    }
  } catch {
    // An ancestor has ended or belongs to another user.
  }
  return false
}
