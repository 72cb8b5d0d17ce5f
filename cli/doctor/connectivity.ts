import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, type TLSSocket } from 'node:tls'
import type { Checks } from '../core/checks.ts'
import { CliError } from '../core/errors.ts'
import { explain } from '../core/http.ts'

const timeoutMs = 10_000

/** Checks name resolution, the connection and the certificate. If a proxy is used, checks only the proxy. */
export async function checkConnectivity(
  { check }: Checks,
  base: string,
  proxy: string | undefined,
): Promise<boolean> {
  const url = new URL(base)
  if (proxy !== undefined && url.protocol === 'https:') {
    return await check('proxy', () => describeProxy(new URL(proxy)))
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const fail = (error: NodeJS.ErrnoException) => Promise.reject(explain(error, url, false))

  const isResolved =
    isIP(host) !== 0 ||
    (await check('name', async () => {
      const found = await lookup(host, { all: true }).catch(fail)
      return `${host} resolves to ${found.map(({ address }) => address).join(', ')}`
    }))
  if (!isResolved) return false
  const isOpen = await check('connection', async () => {
    using socket = await opened(connect({ host, port, timeout: timeoutMs }), 'connect').catch(fail)
    return `connected to ${socket.remoteAddress} port ${socket.remotePort}`
  })
  if (!isOpen || url.protocol === 'http:') return isOpen
  return await check('certificate', async () => {
    const options = { host, port, timeout: timeoutMs, ...(isIP(host) === 0 ? { servername: host } : {}) }
    using socket = await opened(connectSecurely(options), 'secureConnect').catch(fail)
    return describeCertificate(socket)
  })
}

function describeProxy({ host }: URL): string {
  // Versions of Node that support NODE_USE_ENV_PROXY also have this option.
  if (process.allowedNodeEnvironmentFlags.has('--use-env-proxy'))
    return `${host}, except for the hosts in NO_PROXY`
  throw new CliError(
    'failed',
    `Node ${process.versions.node} does not use the proxy, because it does not support NODE_USE_ENV_PROXY.`,
    {
      hint: 'Use Node 22.21 or a later 22.x release, or Node 24.5 or later. To connect without a proxy, unset NODE_USE_ENV_PROXY.',
    },
  )
}

async function opened<S extends Socket>(socket: S, event: string): Promise<S & Disposable> {
  socket.once('timeout', () => socket.destroy(new Error(`no reply within ${timeoutMs / 1000} s`)))
  await once(socket, event)
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() })
}

function describeCertificate(socket: TLSSocket): string {
  const { issuer, valid_to } = socket.getPeerCertificate()
  return `${socket.getProtocol()}, from ${issuer?.O ?? issuer?.CN ?? 'an unknown issuer'}, valid until ${valid_to}`
}
