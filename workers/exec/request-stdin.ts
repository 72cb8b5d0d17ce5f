/** The stdin of a request on its way to its command. A command may read it late, or never, so it is counted. */
import type { Reservation } from '../../shared/platform/memory-budget.ts'

export class RequestStdin {
  private readonly holding: Reservation
  private bytes: Buffer | undefined

  /** @param held counts the request that the text comes from */
  constructor(held: Reservation, text: string) {
    this.bytes = Buffer.from(text)
    this.holding = held.move('stdin', this.bytes.length)
  }

  /** Hands the bytes over. They count until {@link free}. */
  take(): Buffer | undefined {
    const { bytes } = this
    this.bytes = undefined
    return bytes
  }

  free(): void {
    this.bytes = undefined
    this.holding.free()
  }
}
