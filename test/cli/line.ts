/** A connection between client and service that tests can cut. */
import { openRelay } from '../support/relay.ts'

export interface CuttableLine extends AsyncDisposable {
  url: string
  cut(): number
  /** Cuts all connections, and blocks new ones until `repair`. */
  hold(): void
  repair(): void
  /** Calls `act` once, when the first connection opens. */
  onConnection(act: () => void): void
  /** Cuts each of the next `count` connections when a response arrives. */
  cutAnswers(count: number): void
}

/** @param at port to listen on. Default: any free port. */
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
