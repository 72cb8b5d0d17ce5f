/** A connection between a client and the service that a test can cut. */
import { openRelay } from '../support/relay.ts'

export interface CuttableLine extends AsyncDisposable {
  url: string
  /** Resets all open connections. @returns their number */
  cut(): number
  /** Cuts, and lets nothing through until `repair`. */
  hold(): void
  repair(): void
  /** Calls for the first connection that is made. */
  onConnection(act: () => void): void
  /** Cuts the next connections as soon as they carry a response. */
  cutAnswers(count: number): void
}

/** @param at the port to listen on; any free one by default */
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
