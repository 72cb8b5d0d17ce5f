/** The line between a client and the service, to be cut. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CuttableLine extends AsyncDisposable {
  url: string
  /** Resets every connection that is open. @returns how many there were */
  cut(): number
  /** Cuts, and lets nothing through until `mend`. */
  hold(): void
  mend(): void
  /** Calls for the first connection that is made. */
  onConnection(act: () => void): void
  /** Cuts the next connections as soon as something comes back on them. */
  cutAnswers(count: number): void
}

/** @param at the port where it listens; any that is free unless told */
export async function openLine(to: string, at = 0): Promise<CuttableLine> {
  const { hostname, port } = new URL(to)
  const open = new Set<Socket>()
  let isHeld = false
  let onConnection: (() => void) | undefined
  let toCut = 0
  const server = createServer((near) => {
    if (isHeld) return void near.resetAndDestroy()
    const far = connect(Number(port), hostname)
    onConnection?.()
    onConnection = undefined
    far.prependOnceListener('data', () => {
      if (toCut-- > 0) near.resetAndDestroy()
    })
    open.add(near)
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => {})
      from.on('close', () => other.destroy())
      from.pipe(other)
    }
    near.on('close', () => open.delete(near))
  })
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve))
  const cut = () => {
    const count = open.size
    for (const socket of open) socket.resetAndDestroy()
    return count
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    hold() {
      isHeld = true
      cut()
    },
    mend() {
      isHeld = false
    },
    onConnection: (act) => {
      onConnection = act
    },
    cutAnswers: (count) => {
      toCut = count
    },
    async [Symbol.asyncDispose]() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
