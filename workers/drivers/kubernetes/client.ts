/**
 * The connection to the API server: one kubeconfig, one pool of connections, and a time-out on every request. Failures
 * are put in the driver's terms.
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { ApiException, KubeConfig, type RequestContext } from '@kubernetes/client-node'
import { Agent, type Dispatcher } from 'undici'
import {
  type LivenessTimeouts,
  livenessTimeoutsOf,
  usualSeconds,
} from '../../../shared/platform/liveness-timeouts.ts'
import { SettingsError } from '../../../shared/platform/settings.ts'
import { DriverUnavailable, ClusterMisconfigured } from '../driver.ts'
import { runClusterHint } from './policies.ts'

/**
 * A KubeConfig whose clients share connections, and wait for so long. By default every request opens one, and waits for
 * ever. The watch brings a time-out of its own.
 */
export class ClusterConnection extends KubeConfig {
  #pool: Dispatcher | undefined
  #path: string | undefined
  #text: string | undefined
  livenessTimeouts: LivenessTimeouts = livenessTimeoutsOf(usualSeconds)

  /**
   * @param path of a kubeconfig; without one, the service account of the pod that this runs in
   * @throws {SettingsError} there is none, or it is unusable
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
          ? 'KUBECONFIG is not set, and this is no pod of a cluster.'
          : 'KUBECONFIG has no current context with a cluster.',
      )
    }
    return connection
  }

  /** Called by every generated API, and by the watch, just before a request leaves. */
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
   * Takes the new credential of a kubeconfig that was replaced. It ignores a file that it cannot read, and one that leads
   * to another cluster, which takes a restart.
   * @returns whether there is a new one
   */
  async readAgain(): Promise<boolean> {
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
    // Its connections have the old certificates. What is under way there goes on.
    void this.#pool?.close()
    this.#pool = undefined
    return true
  }

  /** When its token ends; undefined for another kind of credential, or a token that does not say. */
  readEnd(): Date | undefined {
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
      // The library supports all kinds of proxies. The agent that it makes is kept, instead of made anew.
      await super.applySecurityAuthentication(request)
      const made = request.getDispatcher()
      if (made) return made
    }
    const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options as Record<
      string,
      never
    >
    const tls = { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername }
    return new Agent({
      // An HTTP/2 connection that died unseen would fail every request until TCP notices. Over HTTP/1.1 the time-out of
      // one request closes its connection, and the next request opens another.
      allowH2: false,
      // Below the 90 s after which an API server closes an idle connection.
      keepAliveTimeout: 60_000,
      connect: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    })
  }
}

/** What went wrong with a request. Without a `code` no answer came. */
export interface Failure {
  code?: number | undefined
  /** One word of Kubernetes, such as `AlreadyExists`; may be empty. */
  reason: string
  message: string
}

/** Reads an error of the client. Its own message would show headers. */
export function readFailure(error: unknown): Failure {
  if (error instanceof ApiException) return { code: error.code, ...readStatus(error.body, error.code) }
  const { cause, name, message, statusCode } = error as Error & { statusCode?: number; cause?: Error }
  if (name === 'TimeoutError') return { reason: '', message: 'no answer in time' }
  return { code: statusCode, reason: '', message: cause?.message || message || String(error) }
}

/** Reads a Kubernetes Status, as text or parsed; anything else is quoted as it is. */
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
  const words = code === 401 ? 'the credential is unknown, or has ended (HTTP 401)' : `HTTP ${code}`
  return { reason: reason ?? '', message: message ?? words }
}

/** Whether the cluster was never set up, or the credential is not the one that was made for it. */
export const isSetupProblem = ({ code, message }: Failure): boolean =>
  code === 401 ||
  (code === 403 && /cannot \w+ resource/.test(message)) ||
  (code === 404 && /^namespaces? /.test(message))

/** For a failure that says nothing about the pod: worth another try, perhaps after an operator has helped. */
export function driverUnavailable(failure: Failure): DriverUnavailable {
  if (!isSetupProblem(failure)) return new DriverUnavailable(`Kubernetes: ${failure.message}`)
  return new ClusterMisconfigured(`Kubernetes: ${failure.message}. ${runClusterHint}`)
}
