import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

type ListenAddress = { path: string } | { port: number; host: string }

export interface Relay {
  /** The actual port, even if 0 was requested. */
  port: number
  connections(): number
  /** @returns the number of broken connections */
  breakAll(): number
  /** Breaks all connections and rejects new ones. */
  cut(): void
  /** Stops forwarding, but keeps connections open. */
  freeze(): void
  loseAnswers(): void
  /** Drops all bytes on open connections without closing them. New connections work. */
  forget(): void
  /** Changes the destination of new connections. */
  lead(to: ListenAddress): void
  delay(ms: number): void
  /** Resumes forwarding, and breaks connections that have lost bytes. */
  repair(): void
  close(): Promise<void>
}

export interface RelayOptions {
  /** Called for each new connection before any byte is forwarded. */
  opened?(near: Socket, far: Socket): void
  /** Called for each new connection. Returns a filter for the requests. */
  filter?(): (bytes: Buffer) => boolean
  /** Breaks TCP connections with a reset, as a router does. */
  resets?: boolean
}

type Mode = 'whole' | 'cut' | 'frozen' | 'one-way'

/** @param at port 0 selects a free port */
export async function openRelay(
  from: ListenAddress,
  at: ListenAddress,
  { opened, filter, resets = false }: RelayOptions = {},
): Promise<Relay> {
  const sockets = new Set<Socket>()
  /** Connections on which nothing is forwarded, not even a close. */
  const forgotten = new WeakSet<Socket>()
  let leadsTo = from
  let mode: Mode = 'whole'
  let delayMs = 0
  const breakOff = (socket: Socket) => (resets ? socket.resetAndDestroy() : socket.destroy())
  const keep = (socket: Socket) =>
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))

  const server = createServer({ allowHalfOpen: true }, (near) => {
    keep(near)
    if (mode === 'cut') return breakOff(near)
    if (mode === 'frozen') return
    const far = connect({ ...leadsTo, allowHalfOpen: true })
    keep(far)
    opened?.(near, far)
    const passes = filter?.()
    pass(near, far, (bytes) => mode !== 'frozen' && (passes?.(bytes) ?? true))
    pass(far, near, () => mode === 'whole')
    near.on('close', () => forgotten.has(near) || far.destroy())
    far.on('close', () => forgotten.has(far) || near.destroy())
  })

  function pass(source: Socket, sink: Socket, isHeard: (bytes: Buffer) => boolean) {
    /** Chains the delayed writes, so that bytes keep their order when the delay ends. */
    let delayed = Promise.resolve()
    let waiting = 0
    const later = (act: () => void) => {
      if (delayMs === 0 && waiting === 0) return act()
      waiting++
      delayed = Promise.all([delayed, sleep(delayMs)]).then(() => {
        waiting--
        act()
      })
    }
    const write = (bytes: Buffer) => {
      if (sink.destroyed || sink.write(bytes)) return
      source.pause()
      sink.once('drain', () => mode !== 'frozen' && source.resume())
    }
    source.on('data', (bytes) => {
      if (isHeard(bytes) && !forgotten.has(source)) later(() => write(bytes))
    })
    source.on('end', () => forgotten.has(source) || later(() => sink.end()))
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at, resolve)
  })
  const address = server.address()
  const breakAll = () => {
    const count = sockets.size / 2
    for (const socket of sockets) breakOff(socket)
    return count
  }
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    connections: () => sockets.size / 2,
    breakAll,
    cut() {
      mode = 'cut'
      breakAll()
    },
    freeze() {
      mode = 'frozen'
      for (const socket of sockets) socket.pause()
    },
    loseAnswers() {
      mode = 'one-way'
    },
    forget() {
      mode = 'whole'
      for (const socket of sockets) forgotten.add(socket.resume())
    },
    lead(to) {
      leadsTo = to
    },
    delay(ms) {
      delayMs = ms
    },
    repair() {
      for (const socket of sockets) if (mode !== 'whole' || forgotten.has(socket)) breakOff(socket)
      mode = 'whole'
      delayMs = 0
    },
    async close() {
      breakAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
