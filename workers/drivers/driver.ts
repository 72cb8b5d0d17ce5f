/**
 * The interface of the two drivers, which run pods on Kubernetes or, with bubblewrap, on this machine. Code
 * outside the drivers' folders must not depend on which driver is in use.
 */
import type { Duplex, Readable, Writable } from 'node:stream'
import type { LivenessTimeouts } from '../../shared/platform/liveness-timeouts.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Resource } from './exhausted.ts'

export interface DriverOptions {
  settings: Settings
  /** Identifies this installation. A driver ignores the pods of other installations. */
  installationId: string
  log: Logger
}

/**
 * Every method can reject with {@link DriverUnavailable} if the cluster or the pod is unreachable; the caller
 * can retry. Methods that use an existing pod reject with {@link PodGone} if the pod is no longer running.
 */
export interface Driver {
  readonly kind: 'kubernetes' | 'local'
  /** Whether processes start so slowly that workers open shells in advance. */
  readonly startsSlowly: boolean
  readonly livenessTimeouts: LivenessTimeouts

  /** Checks that pods can be created and reached, and that they are isolated. */
  ping(): Promise<void>

  /**
   * Creates a pod. Resolves when the request has been accepted, without waiting for the pod to run.
   * Idempotent.
   * @throws {PodRefused} if the cluster will never accept this pod (quota, admission, invalid image name)
   * @throws {ClusterMisconfigured} if the cluster does not isolate pods
   */
  create(request: PodRequest): Promise<Pod>

  /** Returns a fingerprint of the pod's configuration. Pods with the same fingerprint are interchangeable. */
  fingerprint(request: Pick<PodRequest, 'image' | 'deadlineSeconds'>): string

  /**
   * Assigns a warm pod, which was created in advance, to a sandbox and lowers the pod's deadline. Idempotent.
   * @param to.deadlineSeconds seconds from the pod's start; must not exceed the value passed to `create`
   */
  assign(pod: PodName, to: { sandboxId: string; deadlineSeconds: number }): Promise<void>

  /**
   * Waits until a command can run in the pod.
   * @param trial runs a command; retried while it rejects with {@link PodGone} or {@link DriverUnavailable}
   * @throws {PodRefused} if the pod will not start, with the cluster's reason
   */
  ready(pod: PodName, signal: AbortSignal, trial: () => Promise<unknown>): Promise<void>

  /**
   * Deletes a pod, and resolves when the pod no longer exists. Idempotent. If a `uid` is given, a newer pod
   * with the same name is kept.
   */
  delete(pod: PodName): Promise<void>

  /** Returns this installation's pods, including dead pods. */
  list(): Promise<PodState[]>

  /**
   * Calls `onDeath` when a pod dies without being deleted. A death can be missed or reported twice; only
   * `list` is complete.
   */
  watch(onDeath: (pod: PodState & { death: PodDeath }) => void): void

  /**
   * Starts a process as the leader of its own process group. The argv can appear in the cluster's URLs and
   * logs, so it must not contain client data.
   *
   * The local driver uses an agent in the sandbox. If the agent dies before it responds, the process might be
   * started twice. The first of the two processes then reads EOF from its stdin.
   * @throws {PodExhausted} if the pod has exhausted a resource that the process needs
   * @throws {DriverUnavailable} also if the pod does not support terminals
   */
  start(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process>

  /** Kills all processes in a pod except the driver's own, even if the pod has reached its process limit. */
  endProcesses(pod: PodName): Promise<void>

  /**
   * Connects to a port on the pod's loopback interface. On some clusters, a refused connection is detected
   * only later; the stream then fails with {@link PortRefused}.
   *
   * Kubernetes cannot half-close a connection. After the writable side ends, the whole connection is closed
   * once the process in the pod stops sending data.
   * @throws {PortRefused} if no process is listening on the port
   */
  connect(pod: PodName, port: number): Promise<Duplex>

  close(): Promise<void>
}

export interface StartOptions {
  /** Starts the process in a terminal of this size, as the leader of a new session. */
  tty?: TerminalSize | undefined
}

export interface TerminalSize {
  rows: number
  columns: number
}

export interface PodRequest {
  /** Name of the pod. It is never reused for another sandbox. */
  name: string
  /** ID of the pod's sandbox. Absent for a warm pod. */
  sandboxId?: string | undefined
  image: string
  /** Seconds from the pod's start to its deadline. The deadline applies even if no worker is running. */
  deadlineSeconds: number
}

/** Identifies a pod. `uid` distinguishes pods that have had the same name at different times. */
export interface PodName {
  name: string
  uid?: string | undefined
}

export interface Pod extends PodName {
  uid: string
  /** The sandbox ID in the pod's label. Only the sandbox's row in the database is authoritative. */
  sandboxId?: string | undefined
}

export interface PodState extends Pod {
  death?: PodDeath | undefined
}

export interface PodDeath {
  reason: 'pod_failed' | 'expired' | 'start_failed'
  /** The reason from Kubernetes, such as `OOMKilled`, `Evicted` or `NodeLost`, or otherwise a description. */
  detail: string
}

/**
 * A process in a pod. The process blocks while its output is not read.
 *
 * On a terminal, all output arrives on stdout. A terminal's stdin cannot be closed to signal EOF; write byte
 * 4 (Ctrl-D) instead.
 */
export interface Process {
  /**
   * On Kubernetes, input or EOF that arrives while the process is exiting can break the connection before the
   * exit code is received. A process whose exit code is needed must therefore read its input to the end.
   *
   * EOF might never arrive unless a byte precedes it, so write a byte first if a process waits for EOF.
   */
  stdin: Writable
  stdout: Readable
  stderr: Readable
  /**
   * Resolves with the exit status, and never rejects. Output can still be read after the process has ended.
   *
   * Kubernetes might not report the exit of a process that left input unread. Call `close` once another
   * source shows that such a process has exited.
   *
   * Without a terminal, Kubernetes can report a broken connection as exit code 0, so exit code 0 is reported
   * as `lost`. To signal success, such a process must exit with a different code or print a known string.
   */
  ended: Promise<ProcessExit>
  /** Resizes the terminal. Undefined without a terminal. Does nothing after the process has ended. */
  resize?: (size: TerminalSize) => Promise<void>
  /** Closes the connection without ending the process. */
  close(): void
}

export type ProcessExit =
  | { kind: 'exited'; code: number }
  /** The connection closed before a trustworthy status arrived, so the exit status is unknown. */
  | { kind: 'lost'; why: string }

export class DriverUnavailable extends Error {
  override name = 'DriverUnavailable'
}

/** The pod is running, but has exhausted a resource that a new process needs. No process was started. */
export class PodExhausted extends DriverUnavailable {
  override name = 'PodExhausted'
  readonly resource: Resource

  constructor(resource: Resource, why: string) {
    super(why)
    this.resource = resource
  }
}

export class ClusterMisconfigured extends DriverUnavailable {
  override name = 'ClusterMisconfigured'
}

export class PodRefused extends Error {
  override name = 'PodRefused'
}

export class PodGone extends Error {
  override name = 'PodGone'
}

export class PortRefused extends Error {
  override name = 'PortRefused'
}
