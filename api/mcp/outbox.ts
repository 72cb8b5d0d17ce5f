/** Sends a response with backpressure. Escapes line separators, so that each event is one line. */
import { inOneLine } from '../../shared/contract/server-sent-events.ts'

export class Outbox {
  /** Whether the client's connection has taken everything that was sent. Messages that can be skipped wait for this. */
  isTaken = false

  /**
   * @param body in which each event, or the whole JSON answer, is one chunk
   * @param first is sent immediately
   */
  async *send(body: ReadableStream<Uint8Array>, first = ''): AsyncGenerator<Buffer> {
    const reader = body.getReader()
    try {
      if (first) yield Buffer.from(first)
      for (;;) {
        this.isTaken = true
        const { value } = await reader.read()
        this.isTaken = false
        if (!value) return
        yield Buffer.from(inOneLine(Buffer.from(value).toString()))
      }
    } finally {
      await reader.cancel().catch(() => {})
    }
  }
}
