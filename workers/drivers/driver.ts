/**
 * What runs pods, seen from the rest of the workers. `kubernetes/` and `local/` each implement
 * it; nothing outside those two folders knows which one runs. One contract test suite,
 * test/drivers/contract.ts, holds both to what is written here.
 */
import type { Readable, Writable } from 'node:stream'

export interface Driver {
  readonly kind: 'kubernetes' | 'local'
  /** Whether starting a process costs so much that it pays to do so before there is a command. */
  readonly startsSlowly: boolean

  /** Resolves when pods can be made and reached. Rejects with {@link DriverUnavailable}. */
  ping(): Promise<void>

  /**
   * Makes a pod and resolves once it is accepted, not yet running. A pod that
   * exists already is found again, so that the call may be repeated.
   * @throws {PodRefused} the cluster will never accept this pod (quota, admission, bad image name)
   * @throws {DriverUnavailable} it could not be asked; try again
   */
  create(request: PodRequest): Promise<Pod>

  /**
   * All that settings and this version make of a pod, as a hash: of two pods with the same one each can
   * stand for the other.
   */
  fingerprint(request: Pick<PodRequest, 'image' | 'deadlineSeconds'>): string

  /**
   * Tells a pod that was made for nobody whose it is, and lowers its deadline; once it was told it stays
   * so. What the network policy selects is not touched. May be repeated.
   * @param to.deadlineSeconds counts from the pod's start, and is at most what it was made with
   * @throws {PodGone} no such pod, or it runs no more
   * @throws {DriverUnavailable} it could not be asked; try again
   */
  assign(pod: PodName, to: { sandboxId: string; deadlineSeconds: number }): Promise<void>

  /**
   * Resolves when a command can run in the pod.
   * @param trial is tried until it does not reject with {@link PodGone} or {@link DriverUnavailable},
   *   in place of a trial of the driver's own; what it has then started can be used
   * @throws {PodRefused} it will not start: the reason is the cluster's
   * @throws {DriverUnavailable} it could not be asked; try again
   */
  ready(pod: PodName, signal: AbortSignal, trial?: () => Promise<unknown>): Promise<void>

  /**
   * Deletes a pod and resolves when it is gone. A pod that is not there is gone already. With
   * a `uid`, only that very pod: another one under the same name is left alone.
   */
  delete(pod: PodName): Promise<void>

  /** Every pod that carries this installation's id, dead ones included. */
  list(): Promise<PodState[]>

  /**
   * Tells of pods that died by themselves, soon after they do. It may miss some and tell of
   * one twice: the sweep's `list` is what can be relied upon.
   */
  watch(onDeath: (pod: PodState & { death: PodDeath }) => void): void

  /**
   * Starts a process in a pod, the leader of its own process group, with the pod's environment.
   * The argv may show up in URLs and logs of the cluster: it must hold nothing of a client's.
   * @throws {PodGone} no such pod, or it runs no more
   * @throws {DriverUnavailable} it could not be reached, or has no terminals
   */
  start(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process>

  /** Stops watching and closes connections. Pods live on. */
  close(): Promise<void>
}

export interface StartOptions {
  /** Gives the process a terminal of this size: it leads a session on it. */
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
  /** Whose it is; absent for a warm pod, which is told later. */
  sandboxId?: string | undefined
  image: string
  /** Seconds from its start after which the pod ends by itself, whoever else is alive. */
  deadlineSeconds: number
}

/** `uid` tells two pods apart that had the same name one after the other. */
export interface PodName {
  name: string
  uid?: string | undefined
}

export interface Pod extends PodName {
  uid: string
  /** Whose it is, as far as it was told. Only its sandbox's row says whose it really is. */
  sandboxId?: string | undefined
}

export interface PodState extends Pod {
  /** Why the pod runs no more; absent while it lives. */
  death?: PodDeath | undefined
}

/** How a pod ended by itself, in the words of `destroy_reason` and `destroy_detail`. */
export interface PodDeath {
  reason: 'pod_failed' | 'expired' | 'start_failed'
  /** One word where Kubernetes has one (`OOMKilled`, `Evicted`, `NodeLost`), else a sentence. */
  detail: string
}

/**
 * Three streams and an ending. Readers that pause make the process wait (backpressure). On a
 * terminal all output comes on stdout and stderr is empty, and there is no end of the input: byte 4
 * is its sign for that.
 */
export interface Process {
  stdin: Writable
  stdout: Readable
  stderr: Readable
  /**
   * Settles once, after the last byte of output was pushed to the streams; never rejects. A cluster
   * may not tell the end of a process that left input unread: who learns of it otherwise closes.
   */
  ended: Promise<ProcessEnd>
  /** Present on a terminal. What has ended meanwhile stays as it is. */
  resize?: (size: TerminalSize) => Promise<void>
  /** Drops the connection. What the process does then is its own affair. */
  close(): void
}

export type ProcessEnd =
  | { kind: 'exited'; code: number }
  /** The connection ended before the status came: how the process ended is not known. */
  | { kind: 'lost'; why: string }

export class DriverUnavailable extends Error {
  override name = 'DriverUnavailable'
}

export class PodRefused extends Error {
  override name = 'PodRefused'
}

export class PodGone extends Error {
  override name = 'PodGone'
}
