/**
 * RPC from the API to a worker, for commands and files. RPCs need not be durable and may be large, so they use HTTP. A
 * job is as fast for a small command, but it has no backpressure, and command, stdin and output would have to be sealed
 * and stored in Redis, as with Redis streams. Over HTTP, a slow reader blocks the command, and a disconnect is noticed
 * immediately. `bench/transport.ts` compares them. The body of a call is sent only after the worker's 100 Continue, so
 * a frozen worker never receives a command that the API has given to another worker.
 */
import type { Tags } from '../contract/conditions.ts'
import type { Input } from '../contract/endpoint.ts'
import type { ExecRequest, ExecResult } from '../contract/exec.ts'
import type { CreatedFile, FileView, files } from '../contract/files.ts'

/** Arguments and results are JSON. */
export interface Calls {
  /** Starts a command. Returns after it has ended, or immediately for a background command. */
  exec: { args: StartExec; result: ExecResult }
  /** Returns the current or, with `wait`, the final result of a command. */
  getExec: { args: OneExec & { wait: boolean }; result: ExecResult }
  stopExec: { args: OneExec & { signal: string }; result: ExecResult }
  /** Kills all processes in the sandbox. Returns when commands can run again. */
  resetSandbox: { args: InSandbox; result: Record<string, never> }
  viewFile: {
    args: InSandbox &
      FileName & {
        startLine?: number | undefined
        endLine?: number | undefined
        reveal?: 'true' | 'false' | undefined
      }
    result: FileView
  }
  createFile: { args: InSandbox & Input<typeof files.createFile.body>; result: CreatedFile }
  editFile: {
    args: InSandbox & Input<typeof files.editFile.body>
    result: Input<typeof files.editFile.reply>
  }
  listFiles: { args: InSandbox & FileName; result: Input<typeof files.listFiles.reply> }
  globFiles: { args: InSandbox & FileName & { pattern: string }; result: Input<typeof files.globFiles.reply> }
  grepFiles: {
    args: InSandbox &
      FileName & { pattern: string; include?: string | undefined; ignoreCase: boolean; fixed: boolean }
    result: Input<typeof files.grepFiles.reply>
  }
}
export type CallName = keyof Calls

/**
 * Calls that stream bytes in one or both directions. If the body comes from the client, the arguments are sent in a
 * header and must be small. The API forwards the worker's status, headers and body unchanged.
 */
export interface Streams {
  /** Starts a command and streams its events to the client. */
  execEvents: { args: StartExec }
  /** Streams the events of a command after `lastEventId`, or from its start. */
  followExec: { args: OneExec & { lastEventId?: string | undefined } }
  writeStdin: { args: OneExec & { offset?: number | undefined; eof: boolean } }
  readOutput: { args: OneExec & { stream: 'stdout' | 'stderr'; range?: string | undefined } }
  /** Reads a file or a range of it, with the conditions of RFC 9110. */
  readRaw: { args: InSandbox & FileName & ReadConditions }
  /** Reads lines of a file, or a file with redacted secrets. The length is not known in advance. */
  readShown: { args: Calls['viewFile']['args'] }
  /** Writes a file. Returns a CreatedFile. */
  writeRaw: {
    args: InSandbox &
      FileName & {
        mode?: string | undefined
        overwrite: boolean
        ifMatch?: Tags | undefined
        /** Fails if the file exists. */
        isNew: boolean
      }
  }
}
export type StreamCallName = keyof Streams

export interface InSandbox {
  sandboxId: string
  accountId: string
  requestId: string
}

export interface ReadConditions {
  range?: string | undefined
  ifRange?: string | undefined
  ifMatch?: Tags | undefined
  ifNoneMatch?: Tags | undefined
  /** The caller needs the ETag, even of a large file. */
  isTagged: boolean
}

/** Exactly one of the two, as in the contract. */
export interface FileName {
  path?: string | undefined
  path_base64?: string | undefined
}

export interface StartExec extends InSandbox {
  execId: string
  /** How the client receives the result: as JSON at the end, as events, or by polling. Sets the default timeout. */
  mode: 'json' | 'events' | 'background'
  request: ExecRequest
  /** Whether the account has an allowlist, which also restricts variables. */
  isListed?: boolean
  idempotencyKey?: string | undefined
}

export interface OneExec extends InSandbox {
  execId: string
}

export interface OnePort extends InSandbox {
  port: number
}

export const callPath = (name: CallName) => `/calls/${name}`
export const streamPath = (name: StreamCallName) => `/streams/${name}`
export const isStream = (path: string): boolean => path.startsWith('/streams/')
export const nameAt = (path: string) => /^\/(?:calls|streams)\/(\w+)$/.exec(path)?.[1]
/** The paths of WebSockets to a command and to a port. The API forwards the client's connection unchanged. */
export const attachPath = '/attach'
export const portPath = '/port'

/** The header with the arguments of a stream whose body comes from the client: JSON in base64url. */
export const argsHeader = 'x-sandlot-args'
/** The header with the account whose memory budget the body is charged to. */
export const accountHeader = 'x-sandlot-account'
/** The header with the milliseconds after which the API considers an unresponsive worker lost. */
export const livenessTimeoutHeader = 'x-sandlot-liveness-timeout-ms'
/** Set on the answer to a stream if the body is a {@link CallProblem}. */
export const problemHeader = 'x-sandlot-problem'

/** An error that the worker returns for the client. */
export interface CallProblem {
  code: string
  detail: string
  members: Record<string, unknown>
  retryAfterSeconds?: number
}

/**
 * The code of an internal {@link CallProblem}: the command of this Idempotency-Key belongs to another worker. Its
 * members are `exec_id` and `worker_id`.
 */
export const execElsewhere = 'exec_elsewhere'
