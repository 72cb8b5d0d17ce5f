/** A connection to a port of a pod, over the protocol that Kubernetes has for forwarding ports. */
import type { Duplex } from 'node:stream'
import { PortRefused, type ProcessExit } from '../driver.ts'
import { duplexOf } from '../duplex.ts'
import { openChannels, type PodProcess, type Protocol } from './channels.ts'
import type { ClusterConnection } from './client.ts'

const channels = { data: 0, error: 1 } as const

/** Milliseconds without a byte from the listener after which a connection ends whose own side has ended. */
const lingerMs = 10_000
const normalClosure = 1000
const wellEnded: ProcessExit = { kind: 'exited', code: 0 }

/**
 * Connects. If nobody listens, the stream fails later. containerd tells the end of a connection a second late, and looks
 * only at the loopback of IPv4.
 * @param opened is called with what must be abandoned when the pod is gone
 * @throws as {@link openChannels}
 */
export async function openPort(
  connection: ClusterConnection,
  place: { namespace: string; pod: string },
  port: number,
  opened: (process: PodProcess) => void,
): Promise<Duplex> {
  const protocol = new PortForward()
  const subresource = `portforward?ports=${port}`
  const { process } = await openChannels(connection, { ...place, subresource }, protocol)
  opened(process)
  void process.ended.then(() => protocol.stop())
  return duplexOf(process, (why) =>
    /connection refused/i.test(why) ? new PortRefused(`nobody listens at port ${port}`) : new Error(why),
  )
}

class PortForward implements Protocol {
  readonly name = 'v4.channel.k8s.io'
  /** The first message of a channel names its port. */
  private readonly begun = new Set<number>()
  private lingering: NodeJS.Timeout | undefined
  private end = (_: ProcessExit): void => {}

  take: Protocol['take'] = (channel, bytes, { stdout, end }) => {
    this.end = end
    if (!this.begun.has(channel)) return void this.begun.add(channel)
    if (channel === channels.error) return end({ kind: 'lost', why: bytes.toString() })
    this.lingering?.refresh()
    stdout.push(bytes)
  }

  closed: Protocol['closed'] = (code) =>
    code === normalClosure ? wellEnded : { kind: 'lost', why: `the connection closed (${code})` }

  /** Kubernetes cannot be told. */
  endInput: Protocol['endInput'] = (_, done) => {
    this.lingering = setTimeout(() => this.end(wellEnded), lingerMs)
    this.lingering.unref()
    done()
  }

  stop(): void {
    clearTimeout(this.lingering)
  }
}
