/**
 * The interface through which workers run pods. `kubernetes/` and `local/` implement it, and no code outside those two
 * folders depends on which one is used. The tests in test/drivers/contract/ verify both against this contract.
 */
import type { Duplex, Readable, Writable } from 'node:stream'
import type { LivenessTimeouts } from '../../shared/platform/liveness-timeouts.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Resource } from './exhausted.ts'

export interface DriverOptions {
  settings: Settings
  /** Pods of other installations are ignored. On Kubernetes it is a label. */
  installationId: string
  log: Logger
}

export interface Driver {
  readonly kind: 'kubernetes' | 'local'
  /** Whether processes start so slowly that shells are opened ahead of commands. */
  readonly startsSlowly: boolean
  /** Liveness timeouts of the cluster, and of shells in pods. */
  readonly livenessTimeouts: LivenessTimeouts

  /**
   * Resolves when pods can be created and reached, and are isolated.
   * @throws {DriverUnavailable}
   */
  ping(): Promise<void>

  /**
   * Creates a pod and resolves once it has been accepted, before it runs. Idempotent: an existing pod is returned.
   * @throws {PodRefused} the cluster will never accept this pod (quota, admission, bad image name)
   * @throws {ClusterMisconfigured} the cluster does not isolate pods
   * @throws {DriverUnavailable} the cluster is unreachable; try again
   */
  create(request: PodRequest): Promise<Pod>

  /** A hash of all properties of a pod. Pods with the same hash are interchangeable. */
  fingerprint(request: Pick<PodRequest, 'image' | 'deadlineSeconds'>): string

  /**
   * Assigns a warm pod to a sandbox, and lowers its deadline. Idempotent. Keeps the labels that policies select.
   * @param to.deadlineSeconds counts from the pod's start, and is at most the deadline that it was created with
   * @throws {PodGone} the pod does not exist, or no longer runs
   * @throws {DriverUnavailable} the cluster is unreachable; try again
   */
  assign(pod: PodName, to: { sandboxId: string; deadlineSeconds: number }): Promise<void>

  /**
   * Resolves when a command can run in the pod.
   * @param trial replaces the driver's own readiness check. It is repeated while it rejects with {@link PodGone} or
   *   {@link DriverUnavailable}
   * @throws {PodRefused} the pod will not start, with the cluster's reason
   * @throws {DriverUnavailable} the cluster is unreachable; try again
   */
  ready(pod: PodName, signal: AbortSignal, trial?: () => Promise<unknown>): Promise<void>

  /** Deletes a pod and resolves when it no longer exists. Idempotent. With a `uid`, keeps another pod of that name. */
  delete(pod: PodName): Promise<void>

  /** Lists the pods that carry this installation's id, including dead ones. */
  list(): Promise<PodState[]>

  /** Reports pods that died without being deleted. It may miss some and report one twice; only `list` is complete. */
  watch(onDeath: (pod: PodState & { death: PodDeath }) => void): void

  /**
   * Starts a process in a pod, as a process group leader, with the pod's environment. The argv may appear in URLs and
   * logs of the cluster, so it must not contain client data. If the local driver's agent dies before it has answered,
   * the process may be started twice; the first one then finds its stdin closed.
   * @throws {PodGone} the pod does not exist, or no longer runs
   * @throws {PodExhausted} the pod lacks a resource for the process
   * @throws {DriverUnavailable} the pod is unreachable, or has no terminals
   */
  start(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process>

  /**
   * Ends all processes in a pod except the driver's own, and keeps its files. It works when the pod has reached its
   * process limit, so a fork bomb cannot prevent it. Success is not verified, because the pod is untrusted.
   * @throws {PodGone} the pod does not exist, or no longer runs
   * @throws {DriverUnavailable} the pod is unreachable
   */
  endProcesses(pod: PodName): Promise<void>

  /**
   * Connects to a port of a pod's loopback interface. The stream ends when the listener ends the connection. It fails
   * when the connection breaks, and with {@link PortRefused} if the cluster reports only later that no process listens.
   * Kubernetes has no half-close, so the end of the writable side ends the connection once the listener is idle.
   * @throws {PortRefused} no process listens
   * @throws {PodGone} the pod does not exist, or no longer runs
   * @throws {DriverUnavailable} the pod is unreachable
   */
  connect(pod: PodName, port: number): Promise<Duplex>

  /** Stops watching and closes connections. Pods keep running. */
  close(): Promise<void>
}

export interface StartOptions {
  /** Gives the process a terminal of this size, and makes it the leader of a session. */
  tty?: TerminalSize | undefined
}

/** Both are whole numbers from 1 to 65535. */
export interface TerminalSize {
  rows: number
  columns: number
}

export interface PodRequest {
  /** Must never have been used for another sandbox. */
  name: string
  /** Absent for a warm pod. */
  sandboxId?: string | undefined
  image: string
  /** Seconds from the pod's start until it ends, even if no worker runs. */
  deadlineSeconds: number
}

/** `uid` distinguishes pods that used the same name at different times. */
export interface PodName {
  name: string
  uid?: string | undefined
}

export interface Pod extends PodName {
  uid: string
  /** The sandbox that the pod was assigned to. Only the sandbox's row is authoritative. */
  sandboxId?: string | undefined
}

export interface PodState extends Pod {
  /** Why the pod no longer runs. Absent while it lives. */
  death?: PodDeath | undefined
}

/** The values of `destroy_reason` and `destroy_detail` for a pod that was not deleted. */
export interface PodDeath {
  reason: 'pod_failed' | 'expired' | 'start_failed'
  /** The reason of Kubernetes if it has one (`OOMKilled`, `Evicted`, `NodeLost`), else a sentence. */
  detail: string
}

/**
 * A paused reader blocks the process (backpressure). On a terminal, all output arrives on stdout, stderr is empty, and
 * the input has no EOF; byte 4 represents it.
 */
export interface Process {
  /**
   * On a cluster, input or EOF that arrives as the process exits may break the connection before the exit code has
   * arrived, and the process is then `lost`. A process that must report its exit code therefore has to read its input
   * to the end. EOF without a preceding byte may never arrive, so write a byte first if a process waits for EOF.
   */
  stdin: Writable
  stdout: Readable
  stderr: Readable
  /**
   * Never rejects. Unread output can still be read afterwards. A cluster may not report the exit of a process that left
   * input unread; close the process once its exit is known from another source. A cluster that reports a broken
   * connection as exit code 0 may cause that code to be reported as `lost`, except on a terminal. A process that must
   * prove its success has to exit with another code, or print a word.
   */
  ended: Promise<ProcessExit>
  /** Present on a terminal. Does nothing once the process has ended. */
  resize?: (size: TerminalSize) => Promise<void>
  /** Closes the connection. It does not end the process. */
  close(): void
}

export type ProcessExit =
  | { kind: 'exited'; code: number }
  /** The connection ended before a trustworthy status arrived, so the exit status is unknown. */
  | { kind: 'lost'; why: string }

export class DriverUnavailable extends Error {
  override name = 'DriverUnavailable'
}

/** The pod runs, but lacks a resource for one more process. Nothing was started. */
export class PodExhausted extends DriverUnavailable {
  override name = 'PodExhausted'
  readonly resource: Resource

  constructor(resource: Resource, why: string) {
    super(why)
    this.resource = resource
  }
}

/** The cluster is not set up as required. Only an operator can fix that. */
export class ClusterMisconfigured extends DriverUnavailable {
  override name = 'ClusterMisconfigured'
}

export class PodRefused extends Error {
  override name = 'PodRefused'
}

export class PodGone extends Error {
  override name = 'PodGone'
}

/** No process listens at the port. */
export class PortRefused extends Error {
  override name = 'PortRefused'
}
