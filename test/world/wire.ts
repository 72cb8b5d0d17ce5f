/** A wire to the cluster that can be cut, or made to swallow everything, between a worker and the API server. */
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'

export interface Wire {
  /** Text of a kubeconfig that leads over the wire. */
  kubeconfig: string
  /** Connections that are open right now. */
  connections(): number
  /** Breaks every connection, and takes no new one. */
  cut(): void
  /** Passes nothing on any more, and tells nobody. */
  freeze(): void
  /** Passes on again what is new; what was frozen breaks. */
  mend(): void
  close(): void
}

/** A wire for the processes that are started with its `env`. */
export async function openWireIn(
  folder: string,
  { env }: Cluster,
): Promise<Wire & { env: { KUBECONFIG: string } }> {
  const wire = await openWire(readFileSync(env.KUBECONFIG!, 'utf8'))
  const path = join(folder, 'kubeconfig-over-the-wire')
  writeFileSync(path, wire.kubeconfig, { mode: 0o600 })
  return { ...wire, env: { KUBECONFIG: path } }
}

/** @param kubeconfig text of the one to reach the cluster with, as `npm run cluster` writes it: JSON */
export async function openWire(kubeconfig: string): Promise<Wire> {
  const config = JSON.parse(kubeconfig)
  const { cluster } = config.clusters[0]
  const far = new URL(cluster.server)
  const sockets = new Set<Socket>()
  let mode: 'whole' | 'cut' | 'frozen' = 'whole'
  const keep = (socket: Socket) =>
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))

  const server = createServer((near) => {
    keep(near)
    if (mode === 'cut') return near.destroy()
    if (mode === 'frozen') return
    const other = connect(Number(far.port || 443), far.hostname)
    keep(other)
    near.pipe(other).pipe(near)
    near.on('close', () => other.destroy())
    other.on('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cluster.server = `https://127.0.0.1:${(server.address() as { port: number }).port}`
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    kubeconfig: JSON.stringify(config),
    connections: () => sockets.size / 2,
    cut() {
      mode = 'cut'
      breakAll()
    },
    freeze() {
      mode = 'frozen'
      for (const socket of sockets) socket.unpipe().pause()
    },
    mend() {
      if (mode === 'frozen') breakAll()
      mode = 'whole'
    },
    close() {
      breakAll()
      server.close()
    },
  }
}
