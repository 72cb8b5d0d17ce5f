/**
 * Checks the names by which the API is addressed. A malicious page can make a browser call services on its user's
 * machine or network. So requests from other pages (`Origin`) are refused, and requests by other names that resolve to
 * this address (`Host`, DNS rebinding).
 */
import { Problem } from '../../shared/platform/problem.ts'

export type HostCheck = (headers: { host?: string | undefined; origin?: string | undefined }) => void

/** Allows any name, so that only the Origin is checked. */
const anyHost = '*'
/** Addresses to listen on that are not names of a host. */
const unspecified = ['0.0.0.0', '::', '']

/**
 * @param allowed names, `*.names` below one, each with a port or without, or `*`
 * @param own the address that the API listens on
 */
export function makeHostCheck(allowed: readonly string[], own: string): HostCheck {
  const ofOwn = unspecified.includes(own) ? [] : [own.includes(':') ? `[${own}]` : own]
  const patterns = [...allowed.filter((each) => each !== anyHost), ...ofOwn].map((each) => each.toLowerCase())
  const isKnown = (host: Host) => isLocal(host.name) || patterns.some((pattern) => fits(host, pattern))
  const allowsAny = allowed.includes(anyHost)

  return ({ host: given = '', origin }) => {
    const host = readHost(given)
    if (!host || !(allowsAny || isKnown(host))) throw foreignHost(given)
    if (origin === undefined) return
    const page = originHost(origin)
    // Over TLS the certificate proves the name. Over plain HTTP any name may point here.
    const isOwn = page?.isSecure && page.host.whole === host.whole
    if (!page || !(isOwn || isKnown(page.host))) throw foreignOrigin(origin)
  }
}

export const isLocal = (host: string): boolean =>
  host === 'localhost' ||
  host.endsWith('.localhost') ||
  host === '[::1]' ||
  host === '::1' ||
  /^127(\.\d{1,3}){3}$/.test(host)

interface Host {
  name: string
  /** With its port, if it has one. */
  whole: string
}

/** Returns undefined for text that is not a host, for example because it contains a user or a path. */
function readHost(text: string): Host | undefined {
  const isPlain = /^(\[[\da-f:.]{2,50}\]|[\w.-]{1,255})(:\d{1,5})?$/i.test(text)
  if (!isPlain || !URL.canParse(`http://${text}`)) return undefined
  const { hostname } = new URL(`http://${text}`)
  const [, port = ''] = /(:\d+)$/.exec(text) ?? []
  return { name: hostname, whole: hostname + port }
}

function originHost(origin: string): { host: Host; isSecure: boolean } | undefined {
  const [, scheme, text = ''] = /^(https?):\/\/([^/]+)$/i.exec(origin) ?? []
  const host = readHost(text)
  return host && { host, isSecure: scheme?.toLowerCase() === 'https' }
}

function fits({ name, whole }: Host, pattern: string): boolean {
  const against = /:\d+$/.test(pattern) ? whole : name
  return pattern.startsWith('*.') ? against.endsWith(pattern.slice(1)) : against === pattern
}

const maxShown = 300

const foreignHost = (host: string) =>
  new Problem(
    'host_not_allowed',
    `This service does not accept the host ${JSON.stringify(host.slice(0, maxShown))}. Its operator can add it to ALLOWED_HOSTS.`,
  )

const foreignOrigin = (origin: string) =>
  new Problem(
    'origin_not_allowed',
    `Pages of ${origin.slice(0, maxShown)} may not call this service. Call it from a program, or from a page of this machine or of the service.`,
  )
