/**
 * Counts requests to the API server by kind, and writes the counts to FLEET_COUNTS/<pid>.json. Preloaded into
 * APIs and workers.
 * The API server's own counter does not distinguish between clients.
 */
import { subscribe } from 'node:diagnostics_channel'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const { FLEET_SERVER, FLEET_COUNTS } = process.env
const counts: Record<string, number> = {}

function count(method: string, path: string): void {
  const kind = kindOf(method, new URL(path, FLEET_SERVER))
  counts[kind] = (counts[kind] ?? 0) + 1
}

/** For example `GET pods/exec`, `WATCH events` or `LIST pods`. */
function kindOf(method: string, { pathname, searchParams }: URL): string {
  const parts = pathname.replace(/^\/(api|apis\/[^/]+)\/[^/]+\//, '').split('/')
  const [resource, name, subresource] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts
  if (searchParams.has('watch')) return `WATCH ${resource}`
  if (searchParams.has('dryRun')) return `${method} ${resource}, dry run`
  if (method !== 'GET') return `${method} ${resource}`
  if (subresource) return `GET ${resource}/${subresource}`
  if (name) return `GET ${resource}`
  return `LIST ${resource}${searchParams.get('limit') === '1' ? ', limit 1' : ''}`
}

if (FLEET_SERVER && FLEET_COUNTS) {
  const { host } = new URL(FLEET_SERVER)
  subscribe('undici:request:create', (message) => {
    const { request } = message as { request: { origin: string | URL; method: string; path: string } }
    if (new URL(request.origin).host === host) count(request.method, request.path)
  })
  // Execs are WebSockets, which `ws` opens with Node's HTTP client.
  subscribe('http.client.request.start', (message) => {
    const { request } = message as { request: import('node:http').ClientRequest }
    if (request.getHeader('host') === host) count(request.method, request.path)
  })
  const file = join(FLEET_COUNTS, `${process.pid}.json`)
  setInterval(() => {
    writeFileSync(`${file}.new`, JSON.stringify(counts))
    renameSync(`${file}.new`, file)
  }, 500).unref()
}
