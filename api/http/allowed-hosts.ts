/**
 * Refuses requests that malicious web pages send through a user's browser. A foreign `Origin` header means
 * that another site's page sent the request, and a foreign `Host` header indicates DNS rebinding.
 */
import { Problem } from '../../shared/platform/problem.ts'

type HostCheck = (headers: { host?: string | undefined; origin?: string | undefined }) => void

const anyHost = '*'
const unspecified = ['0.0.0.0', '::', '']

/**
 * @param allowed host names, wildcards such as `*.example.com`, or `*`. Each may include a port.
 * @param own the API's listen address, which is also allowed unless it is a wildcard such as 0.0.0.0
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
    // Over plain HTTP, any host name may resolve to this service. Over TLS, the certificate proves the name.
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
  whole: string
}

function readHost(text: string): Host | undefined {
  const isPlain = /^(\[[\da-f:.]{2,50}\]|[\w.-]{1,255})(:\d{1,5})?$/i.test(text)
  const url = isPlain ? URL.parse(`http://${text}`) : null
  if (!url) return undefined
  const [, port = ''] = /(:\d+)$/.exec(text) ?? []
  return { name: url.hostname, whole: url.hostname + port }
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
    `This service does not accept requests for the host ${JSON.stringify(host.slice(0, maxShown))}. The operator can add the host to ALLOWED_HOSTS.`,
  )

const foreignOrigin = (origin: string) =>
  new Problem(
    'origin_not_allowed',
    `Web pages from ${origin.slice(0, maxShown)} may not call this service. Call the service from a program, or from a page that is served by this service or from localhost.`,
  )
