/** A wire between two processes: it passes every byte on, until a test harms it. */
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Where something listens: a socket in a folder, or a port of this machine. */
export type ListenAddress = { path: string } | { port: number; host: string }

export interface Relay {
  /** The port it listens on, where that was for it to choose. */
  port: number
  /** Connections that are open right now. */
  connections(): number
  /** Breaks every connection that is open. @returns how many there were */
  breakAll(): number
  /** Breaks every connection, and takes no new one. */
  cut(): void
  /** Passes nothing on any more, and tells nobody. */
  freeze(): void
  /** What is asked arrives; the answers do not. */
  loseAnswers(): void
  /** Connections that are open stay silent for good, and nobody is told; new ones pass. */
  forget(): void
  /** New connections lead there. */
  lead(to: ListenAddress): void
  /** Every piece, both ways, comes so much later. */
  delay(ms: number): void
  /** Passes everything on again; connections that have lost something break. */
  repair(): void
  close(): Promise<void>
}

export interface RelayOptions {
  /** Told of each connection, and where it leads, before anything has passed. */
  opened?(near: Socket, far: Socket): void
  /** Opened for each connection. @returns whether what is asked there passes */
  sift?(): (bytes: Buffer) => boolean
  /** What breaks is reset, as by a router that forgot it; closed unless told. TCP only. */
  resets?: boolean
}

type Mode = 'whole' | 'cut' | 'frozen' | 'one-way'

/** @param at where it listens; port 0 is any that is free */
export async function openRelay(
  from: ListenAddress,
  at: ListenAddress,
  { opened, sift, resets = false }: RelayOptions = {},
): Promise<Relay> {
  const sockets = new Set<Socket>()
  /** Those that a router has forgotten: nothing passes any more, not even that the other side has closed. */
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
    const passes = sift?.()
    pass(near, far, (bytes) => mode !== 'frozen' && (passes?.(bytes) ?? true))
    pass(far, near, () => mode === 'whole')
    near.on('close', () => forgotten.has(near) || far.destroy())
    far.on('close', () => forgotten.has(far) || near.destroy())
  })

  function pass(source: Socket, sink: Socket, isHeard: (bytes: Buffer) => boolean) {
    /** What is on its way, in order: a wire that is quick again passes nothing by. */
    let onItsWay = Promise.resolve()
    let waiting = 0
    const later = (act: () => void) => {
      if (delayMs === 0 && waiting === 0) return act()
      waiting++
      onItsWay = Promise.all([onItsWay, sleep(delayMs)]).then(() => {
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
