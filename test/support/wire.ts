/** A relay between a worker and the cluster's API server. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'
import { openRelay, type Relay } from './relay.ts'

export interface Wire extends Relay {
  /** Text of a kubeconfig that uses the relay. */
  kubeconfig: string
}

/** Opens a relay for processes started with the returned `env`. */
export async function openWireIn(
  folder: string,
  { env }: Cluster,
): Promise<Wire & { env: { KUBECONFIG: string } }> {
  const wire = await openWire(readFileSync(env.KUBECONFIG!, 'utf8'))
  const path = join(folder, 'kubeconfig-over-the-wire')
  writeFileSync(path, wire.kubeconfig, { mode: 0o600 })
  return { ...wire, env: { KUBECONFIG: path } }
}

/** @param kubeconfig text of the cluster's kubeconfig in JSON, as `npm run cluster` writes it */
export async function openWire(kubeconfig: string): Promise<Wire> {
  const config = JSON.parse(kubeconfig)
  const { cluster } = config.clusters[0]
  const far = new URL(cluster.server)
  const relay = await openRelay(
    { host: far.hostname, port: Number(far.port || 443) },
    { host: '127.0.0.1', port: 0 },
  )
  cluster.server = `https://127.0.0.1:${relay.port}`
  return { ...relay, kubeconfig: JSON.stringify(config) }
}
