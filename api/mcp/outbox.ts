/**
 * Sends an MCP response with backpressure. Unicode line separators are escaped, so that each event has one
 * data line.
 */
import { inOneLine } from '../../shared/contract/server-sent-events.ts'

export class Outbox {
  /** Whether the client's connection has accepted all data. If not, progress notifications are skipped. */
  isTaken = false

  /** Yields `first`, then the body. Each chunk of the body must be a complete event or JSON response. */
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
