/** An answer on its way to its client: the SDK's JSON on one line for every reader, at the reader's pace. */
import { setImmediate } from 'node:timers/promises'
import { inOneLine } from '../../shared/contract/server-sent-events.ts'

/** Characters that are put on one line at a time; between two such pieces others have their turn. */
const pieceLength = 64 * 1024

export class Outbox {
  /** Whether the client's connection has taken all that was sent. What can wait or be left out is sent only then. */
  isTaken = false

  /**
   * @param body in which each event, or the whole JSON answer, is one piece
   * @param first is sent at once
   */
  async *send(body: ReadableStream<Uint8Array>, first = ''): AsyncGenerator<Buffer> {
    const reader = body.getReader()
    const decoder = new TextDecoder()
    try {
      if (first) yield Buffer.from(first)
      for (;;) {
        this.isTaken = true
        const { value } = await reader.read()
        this.isTaken = false
        if (!value) return
        const text = decoder.decode(value)
        for (let from = 0; from < text.length; ) {
          if (from > 0) await setImmediate()
          const to = endOfPiece(text, from)
          yield Buffer.from(inOneLine(text.slice(from, to)))
          from = to
        }
      }
    } finally {
      await reader.cancel().catch(() => {})
    }
  }
}

/** No character that takes two places is cut. */
function endOfPiece(text: string, from: number): number {
  const to = from + pieceLength
  return /[\ud800-\udbff]/.test(text.charAt(to - 1)) ? to + 1 : to
}
