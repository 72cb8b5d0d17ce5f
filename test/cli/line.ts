/** The line between a client and the service, to be cut. */
import { openRelay } from '../support/relay.ts'

export interface CuttableLine extends AsyncDisposable {
  url: string
  /** Resets every connection that is open. @returns how many there were */
  cut(): number
  /** Cuts, and lets nothing through until `repair`. */
  hold(): void
  repair(): void
  /** Calls for the first connection that is made. */
  onConnection(act: () => void): void
  /** Cuts the next connections as soon as something comes back on them. */
  cutAnswers(count: number): void
}

/** @param at the port where it listens; any that is free unless told */
export async function openLine(to: string, at = 0): Promise<CuttableLine> {
  const { hostname, port } = new URL(to)
  let onConnection: (() => void) | undefined
  let toCut = 0
  const relay = await openRelay(
    { host: hostname, port: Number(port) },
    { host: '127.0.0.1', port: at },
    {
      resets: true,
      opened(near, far) {
        onConnection?.()
        onConnection = undefined
        far.prependOnceListener('data', () => {
          if (toCut-- > 0) near.resetAndDestroy()
        })
      },
    },
  )
  return {
    url: `http://127.0.0.1:${relay.port}`,
    cut: relay.breakAll,
    hold: relay.cut,
    repair: relay.repair,
    onConnection: (act) => {
      onConnection = act
    },
    cutAnswers: (count) => {
      toCut = count
    },
    [Symbol.asyncDispose]: relay.close,
  }
}
