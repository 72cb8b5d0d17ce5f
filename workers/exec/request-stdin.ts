/** The stdin in a request's body. The command may read it late or never, so it counts toward the memory budget. */
import type { Reservation } from '../../shared/platform/memory-budget.ts'

export class RequestStdin {
  private readonly reservation: Reservation
  private bytes: Buffer | undefined

  /** @param held the reservation of the request, from which the bytes of `text` are moved to a separate one */
  constructor(held: Reservation, text: string) {
    this.bytes = Buffer.from(text)
    this.reservation = held.move('stdin', this.bytes.length)
  }

  /** Returns the bytes once. They stay reserved until {@link free}. */
  take(): Buffer | undefined {
    const { bytes } = this
    this.bytes = undefined
    return bytes
  }

  free(): void {
    this.bytes = undefined
    this.reservation.free()
  }
}
