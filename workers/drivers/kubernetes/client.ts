import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { ApiException, KubeConfig, type RequestContext } from '@kubernetes/client-node'
import { Agent, type Dispatcher } from 'undici'
import {
  defaultSeconds,
  type LivenessTimeouts,
  livenessTimeoutsOf,
} from '../../../shared/platform/liveness-timeouts.ts'
import { SettingsError } from '../../../shared/platform/settings.ts'
import { ClusterMisconfigured, DriverUnavailable } from '../driver.ts'
import { runClusterHint } from './policies.ts'

/**
 * Gives all API clients a shared connection pool and timeouts. By default, the client library opens a
 * connection for every request and waits forever.
 */
export class ClusterConnection extends KubeConfig {
  #pool: Dispatcher | undefined
  #path: string | undefined
  #text: string | undefined
  livenessTimeouts: LivenessTimeouts = livenessTimeoutsOf(defaultSeconds)

  /**
   * @param path path of a kubeconfig; defaults to the service account of the pod in which this process runs
   * @throws {SettingsError} if the kubeconfig or service account is missing or cannot be used
   */
  static open(path: string | undefined, livenessTimeouts?: LivenessTimeouts): ClusterConnection {
    const connection = new ClusterConnection()
    if (livenessTimeouts) connection.livenessTimeouts = livenessTimeouts
    connection.#path = path
    try {
      if (path !== undefined) {
        connection.#text = readFileSync(path, 'utf8')
        connection.loadFromFile(path)
      } else connection.loadFromCluster()
    } catch (error) {
      throw new SettingsError(`KUBECONFIG cannot be read: ${(error as Error).message}`)
    }
    const server = connection.getCurrentCluster()?.server
    if (server === undefined || server.includes('undefined')) {
      throw new SettingsError(
        path === undefined
          ? 'This process is not running in a Kubernetes pod. Set KUBECONFIG to the path of a kubeconfig.'
          : 'The kubeconfig has no current context, or its current context does not specify a cluster.',
      )
    }
    return connection
  }

  /**
   * Adds the credential, the connection pool and a timeout to a request. The client library calls this method
   * before every request.
   */
  override async applySecurityAuthentication(request: RequestContext): Promise<void> {
    const options: RequestOptions = {}
    await this.applyToHTTPSOptions(options)
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      request.setHeaderParam(name, String(value))
    }
    if (options.auth) {
      request.setHeaderParam('Authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`)
    }
    this.#pool ??= await this.#openPool(request, options)
    request.setDispatcher(this.#pool)
    request.setSignal(AbortSignal.timeout(this.livenessTimeouts.cluster))
  }

  async close(): Promise<void> {
    await this.#pool?.destroy()
  }

  /**
   * Rereads the kubeconfig. Returns false if the file is unchanged or unreadable, or belongs to a different
   * cluster.
   */
  async reload(): Promise<boolean> {
    const text = this.#path && (await readFile(this.#path, 'utf8').catch(() => undefined))
    if (!text || text === this.#text) return false
    this.#text = text
    try {
      const renewed = ClusterConnection.open(this.#path)
      if (renewed.getCurrentCluster()!.server !== this.getCurrentCluster()!.server) return false
      this.loadFromOptions(renewed)
    } catch {
      return false
    }
    // The pooled connections use the old certificates. Requests in progress are completed.
    void this.#pool?.close()
    this.#pool = undefined
    return true
  }

  /** Returns when the credential expires, or undefined if it is not a token or never expires. */
  readExpiry(): Date | undefined {
    const [, payload] = this.getCurrentUser()?.token?.split('.') ?? []
    if (!payload) return undefined
    try {
      const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      return typeof exp === 'number' ? new Date(exp * 1000) : undefined
    } catch {
      return undefined
    }
  }

  async #openPool(request: RequestContext, options: RequestOptions): Promise<Dispatcher> {
    const cluster = this.getCurrentCluster()
    if (cluster?.proxyUrl) {
      // The library's proxy agent supports all kinds of proxies. It is created only once here.
      await super.applySecurityAuthentication(request)
      const dispatcher = request.getDispatcher()
      if (dispatcher) return dispatcher
    }
    const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options as Record<
      string,
      never
    >
    const tls = { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername }
    return new Agent({
      // A dead HTTP/2 connection would fail every request until TCP detects it. With HTTP/1.1, the timeout of
      // one request closes its connection.
      allowH2: false,
      // Shorter than the 90 s after which an API server closes an idle connection.
      keepAliveTimeout: 60_000,
      connect: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    })
  }
}

export interface Failure {
  code?: number | undefined
  /** The reason reported by Kubernetes, such as `AlreadyExists`; may be empty. */
  reason: string
  message: string
}

/**
 * Reads the code, reason and message of a failed request. The client library's own error message would expose
 * request headers.
 */
export function readFailure(error: unknown): Failure {
  if (error instanceof ApiException) return { code: error.code, ...readStatus(error.body, error.code) }
  const { cause, name, message, statusCode } = error as Error & { statusCode?: number; cause?: Error }
  if (name === 'TimeoutError') return { reason: '', message: 'no response in time' }
  return { code: statusCode, reason: '', message: cause?.message || message || String(error) }
}

/** Reads the reason and message in a Kubernetes Status object. Any other text becomes the message. */
export function readStatus(body: unknown, code: number): Omit<Failure, 'code'> {
  let status = body
  if (typeof body === 'string') {
    try {
      status = JSON.parse(body)
    } catch {
      return { reason: '', message: `${code}: ${body.trim().slice(0, 300)}` }
    }
  }
  const { reason, message } = (status ?? {}) as { reason?: string; message?: string }
  const fallback = code === 401 ? 'the credential is unknown or has expired (HTTP 401)' : `HTTP ${code}`
  return { reason: reason ?? '', message: message ?? fallback }
}

export const isSetupProblem = ({ code, message }: Failure): boolean =>
  code === 401 ||
  (code === 403 && /cannot \w+ resource/.test(message)) ||
  (code === 404 && /^namespaces? /.test(message))

export function driverUnavailable(failure: Failure): DriverUnavailable {
  if (!isSetupProblem(failure)) return new DriverUnavailable(`Kubernetes: ${failure.message}`)
  return new ClusterMisconfigured(`Kubernetes: ${failure.message}. ${runClusterHint}`)
}
