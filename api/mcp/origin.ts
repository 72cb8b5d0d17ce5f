/** Whether a page in a browser may call: one that was lured here must not speak to a service on its user's machine. */
import { Problem } from '../../shared/problem.ts'

const localHosts = ['localhost', '127.0.0.1', '[::1]']

/**
 * Programs send no Origin. Of pages those of this machine and of the service itself pass; a name that
 * was rebound to this machine is neither, since then it is not by that name that the service is known.
 * @throws {Problem} `origin_not_allowed`
 */
export function refuseForeignOrigin(headers: {
  origin?: string | undefined
  host?: string | undefined
}): void {
  const { origin, host } = headers
  if (origin === undefined || isAllowed(origin, host)) return
  throw new Problem(
    'origin_not_allowed',
    `Pages of ${origin} may not call this. Call it from a program, or from a page of this machine or of the service.`,
  )
}

function isAllowed(origin: string, host: string | undefined): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return false
  // Over TLS the certificate vouches for the name; over plain HTTP any name may point here.
  return localHosts.includes(url.hostname) || (url.protocol === 'https:' && url.host === host)
}
