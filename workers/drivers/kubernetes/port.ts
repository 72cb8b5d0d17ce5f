import type { Duplex } from 'node:stream'
import { PortRefused, type ProcessExit } from '../driver.ts'
import { duplexOf } from '../duplex.ts'
import { openChannels, type PodProcess, type Protocol } from './channels.ts'
import type { ClusterConnection } from './client.ts'

const channels = { data: 0, error: 1 } as const

/**
 * After the client has ended its input, the connection closes once the process in the pod has sent nothing
 * for this long.
 */
const lingerMs = 10_000
const normalClosure = 1000
const closedNormally: ProcessExit = { kind: 'exited', code: 0 }

/**
 * Connects to a port of a pod. Resolves when the API server has accepted the connection; if no process is
 * listening, the stream fails later. containerd connects only to the IPv4 loopback address, and reports the
 * end of a connection one second late.
 * @param opened receives the connection, which the caller must abandon when the pod dies
 */
export async function openPort(
  connection: ClusterConnection,
  target: { namespace: string; pod: string },
  port: number,
  opened: (process: PodProcess) => void,
): Promise<Duplex> {
  const protocol = new PortForward()
  const subresource = `portforward?ports=${port}`
  const { process } = await openChannels(connection, { ...target, subresource }, protocol)
  opened(process)
  void process.ended.then(() => protocol.stop())
  return duplexOf(process, (why) =>
    /connection refused/i.test(why)
      ? new PortRefused(`no process is listening on port ${port}`)
      : new Error(why),
  )
}

class PortForward implements Protocol {
  readonly name = 'v4.channel.k8s.io'
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
    code === normalClosure ? closedNormally : { kind: 'lost', why: `the connection closed (${code})` }

  /**
   * Closes the whole connection once the process in the pod stops sending data, because the protocol cannot
   * half-close a connection.
   */
  endInput: Protocol['endInput'] = (_, done) => {
    this.lingering = setTimeout(() => this.end(closedNormally), lingerMs)
    this.lingering.unref()
    done()
  }

  stop(): void {
    clearTimeout(this.lingering)
  }
}
