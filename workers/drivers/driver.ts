/**
 * The driver: what runs pods, seen from the rest of the workers. `kubernetes/` and `local/` each implement it; nothing
 * outside those two folders knows which one runs. One contract test suite, test/drivers/contract/, holds both to what
 * is written here.
 */
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Logger } from '../../shared/platform/log.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Silence } from '../../shared/platform/silence.ts'
import type { Resource } from './exhausted.ts'

export interface DriverOptions {
  settings: Settings
  /** Only pods that carry this id are ours. On Kubernetes it is a label. */
  installationId: string
  log: Logger
}

export interface Driver {
  readonly kind: 'kubernetes' | 'local'
  /** Whether starting a process is so slow that it pays to do so before there is a command. */
  readonly startsSlowly: boolean
  /** How long it waits for the cluster, and others for shells that they start in pods. */
  readonly silence: Silence

  /**
   * Resolves when pods can be made and reached, and what keeps them apart stands. Rejects with {@link DriverUnavailable}.
   */
  ping(): Promise<void>

  /**
   * Makes a pod and resolves once it is accepted, not yet running. A pod that exists already is found again, so the
   * call may be repeated.
   * @throws {PodRefused} the cluster will never accept this pod (quota, admission, bad image name)
   * @throws {NotSetUp} what keeps pods apart does not stand
   * @throws {DriverUnavailable} the cluster could not be asked; try again
   */
  create(request: PodRequest): Promise<Pod>

  /** A hash of all that the settings and this version make of a pod. Pods with the same hash are interchangeable. */
  fingerprint(request: Pick<PodRequest, 'image' | 'deadlineSeconds'>): string

  /**
   * Tells a warm pod whose it is, and lowers its deadline, for good. What the network policy selects is not touched.
   * May be repeated.
   * @param to.deadlineSeconds counts from the pod's start, and is at most what it was made with
   * @throws {PodGone} no such pod, or it no longer runs
   * @throws {DriverUnavailable} the cluster could not be asked; try again
   */
  assign(pod: PodName, to: { sandboxId: string; deadlineSeconds: number }): Promise<void>

  /**
   * Resolves when a command can run in the pod.
   * @param trial is tried, in place of a trial of the driver's own, until it does not reject with {@link PodGone} or
   *   {@link DriverUnavailable}. What it has started can then be used
   * @throws {PodRefused} the pod will not start: the reason is the cluster's
   * @throws {DriverUnavailable} the cluster could not be asked; try again
   */
  ready(pod: PodName, signal: AbortSignal, trial?: () => Promise<unknown>): Promise<void>

  /**
   * Deletes a pod and resolves when it is gone. It may be gone already. With a `uid` only that very pod is deleted, and
   * another one under the same name stays.
   */
  delete(pod: PodName): Promise<void>

  /** Every pod that carries this installation's id, including dead ones. */
  list(): Promise<PodState[]>

  /**
   * Calls back for pods that died by themselves, soon after. It may miss some and report one twice; only the sweep's
   * `list` is complete.
   */
  watch(onDeath: (pod: PodState & { death: PodDeath }) => void): void

  /**
   * Starts a process in a pod, the leader of its own process group, with the pod's environment. The argv may show in
   * URLs and logs of the cluster, so it must hold nothing of a client's.
   * @throws {PodGone} no such pod, or it no longer runs
   * @throws {PodExhausted} it has no room for the process
   * @throws {DriverUnavailable} the pod could not be reached, or has no terminals
   */
  start(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process>

  /**
   * Ends all processes in a pod that are not the driver's own, and keeps its files. It needs no free process, so a fork
   * bomb cannot stop it. Only the pod could report success, and its word is not believed.
   * @throws {PodGone} no such pod, or it no longer runs
   * @throws {DriverUnavailable} the pod could not be reached
   */
  endProcesses(pod: PodName): Promise<void>

  /**
   * Connects to a port of a pod's loopback interface; a listener of all interfaces takes it too. The stream ends when
   * the listener has ended the connection. It fails when the connection breaks, and with {@link PortRefused} when a
   * cluster tells only later that nobody listens. Kubernetes cannot end only one direction: there the stream's own end
   * ends the connection, once the listener has been silent for a while.
   * @throws {PortRefused} nobody listens
   * @throws {PodGone} no such pod, or it no longer runs
   * @throws {DriverUnavailable} the pod could not be reached
   */
  connect(pod: PodName, port: number): Promise<Duplex>

  /** Stops watching and closes connections. Pods live on. */
  close(): Promise<void>
}

export interface StartOptions {
  /** Gives the process a terminal of this size, and makes it the leader of a session there. */
  tty?: TerminalSize | undefined
}

/** Both are whole numbers from 1 to 65535. */
export interface TerminalSize {
  rows: number
  columns: number
}

export interface PodRequest {
  /** Never used before for another sandbox. */
  name: string
  /** Whose it is. Absent for a warm pod, which is told later. */
  sandboxId?: string | undefined
  image: string
  /** Seconds from its start until the pod ends by itself, whatever else is alive. */
  deadlineSeconds: number
}

/** `uid` tells two pods apart that had the same name one after the other. */
export interface PodName {
  name: string
  uid?: string | undefined
}

export interface Pod extends PodName {
  uid: string
  /** Whose it is, as far as the pod was told. Only the sandbox's row says whose it really is. */
  sandboxId?: string | undefined
}

export interface PodState extends Pod {
  /** Why the pod no longer runs. Absent while it lives. */
  death?: PodDeath | undefined
}

/** How a pod ended by itself, in the words of `destroy_reason` and `destroy_detail`. */
export interface PodDeath {
  reason: 'pod_failed' | 'expired' | 'start_failed'
  /** One word where Kubernetes has one (`OOMKilled`, `Evicted`, `NodeLost`), else a sentence. */
  detail: string
}

/**
 * Three streams and an end. A reader that pauses makes the process wait (backpressure). On a terminal all output comes
 * on stdout, stderr is empty, and the input has no end: there, byte 4 means that.
 */
export interface Process {
  /**
   * What arrives as the process ends, its own end too, may break a cluster's connection before the exit code has come:
   * the process is then `lost`. So let a process that must tell its exit code read its input to the end. An end that no
   * byte precedes may never arrive: write a byte first where a process waits for the end.
   */
  stdin: Writable
  stdout: Readable
  stderr: Readable
  /**
   * Resolves after the last byte of output was pushed to the streams; never rejects. A cluster may not report the end
   * of a process that left input unread: then close it when you learn of its end in another way. A cluster that takes a
   * broken connection for exit code 0 may tell that code as `lost`, except on a terminal: let a process that must prove
   * its success end with another one, or print a word.
   */
  ended: Promise<ProcessEnd>
  /** Present on a terminal. Does nothing once the process has ended. */
  resize?: (size: TerminalSize) => Promise<void>
  /** Closes the connection. It does not end the process. */
  close(): void
}

export type ProcessEnd =
  | { kind: 'exited'; code: number }
  /** The connection ended before a status came that can be believed, so how the process ended is not known. */
  | { kind: 'lost'; why: string }

export class DriverUnavailable extends Error {
  override name = 'DriverUnavailable'
}

/** The pod runs, and has used up what one more process needs. Nothing was started. */
export class PodExhausted extends DriverUnavailable {
  override name = 'PodExhausted'
  readonly resource: Resource

  constructor(resource: Resource, why: string) {
    super(why)
    this.resource = resource
  }
}

/** The cluster answers, and is not as Sandlot needs it: only an operator can help. */
export class NotSetUp extends DriverUnavailable {
  override name = 'NotSetUp'
}

export class PodRefused extends Error {
  override name = 'PodRefused'
}

export class PodGone extends Error {
  override name = 'PodGone'
}

/** Nobody listens at the port. */
export class PortRefused extends Error {
  override name = 'PortRefused'
}
