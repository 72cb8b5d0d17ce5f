/**
 * The stdin of an exec request. It counts toward the memory budget, because the command may read it late or
 * not at all.
 */
import type { Reservation } from '../../shared/platform/memory-budget.ts'

export class RequestStdin {
  private readonly reservation: Reservation
  private bytes: Buffer | undefined

  /** @param held the request's reservation; the bytes move from it to a separate reservation */
  constructor(held: Reservation, bytes: Buffer) {
    this.bytes = bytes
    this.reservation = held.move('stdin', bytes.length)
  }

  /** Returns the bytes on the first call, then undefined. The bytes stay reserved until {@link free}. */
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
