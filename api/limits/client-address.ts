import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import proxyAddr from 'proxy-addr'
import { SettingsError } from '../../shared/platform/settings.ts'

type ClientAddress = (request: IncomingMessage) => string

/**
 * Returns a function that determines the client address of a request.
 * @param trustedProxies IP addresses and ranges of proxies whose `X-Forwarded-For` header is trusted
 * @throws {SettingsError} for an invalid address or range
 */
export function makeClientAddress(trustedProxies: string[]): ClientAddress {
  const isTrusted = trustOf(trustedProxies)
  return (request) => {
    const socket = request.socket.remoteAddress ?? ''
    const claimed = withoutPort(proxyAddr(request, (address, hop) => isTrusted(withoutPort(address), hop)))
    return normalise(ipaddr.isValid(claimed) ? claimed : socket)
  }
}

function trustOf(proxies: string[]) {
  if (proxies.length === 0) return () => false
  try {
    return proxyAddr.compile(proxies)
  } catch (error) {
    throw new SettingsError(`TRUSTED_PROXIES: ${(error as Error).message}`)
  }
}

function withoutPort(address: string): string {
  const [, bracketed, plain] =
    /^(?:\[([^\]]*)\]|((?:::ffff:)?\d+\.\d+\.\d+\.\d+))(?::\d+)?$/i.exec(address) ?? []
  return bracketed ?? plain ?? address
}

/** Returns an IPv4 address, or an IPv6 address's /64 network. An ISP assigns at least a /64 per customer. */
function normalise(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const network = (parsed as ipaddr.IPv6).parts.slice(0, 4)
  return `${network.map((part) => part.toString(16)).join(':')}::/64`
}

/** Returns the /24 network of an IPv4 address or the /48 network of an IPv6 address. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address.split('.').slice(0, 3).join('.')
  return address.split(':').slice(0, 3).join(':')
}
