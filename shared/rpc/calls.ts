/**
 * RPC from the API to a worker, for commands and files. They need not be durable and may be large, so they use HTTP. A
 * job is as quick for a small command, but would put command, stdin and output through Redis, sealed, and has no
 * backpressure; Redis streams would cost the same. Over HTTP, a slow reader slows the command, and a disconnect is
 * noticed immediately. `bench/transport.ts` compares them. A call is handed over in two steps: the body is sent only
 * after the worker's 100 Continue, so a worker that froze never gets a command that the API has given to another.
 */
import type { Tags } from '../contract/conditions.ts'
import type { Input } from '../contract/endpoint.ts'
import type { ExecRequest, ExecResult } from '../contract/exec.ts'
import type { CreatedFile, FileView, files } from '../contract/files.ts'

/** Arguments and results are JSON. */
export interface Calls {
  /** Starts a command. Answers when it has ended; at once for one in the background. */
  exec: { args: StartExec; result: ExecResult }
  /** The result so far, or at its end, of a command that was started before. */
  getExec: { args: OneExec & { wait: boolean }; result: ExecResult }
  stopExec: { args: OneExec & { signal: string }; result: ExecResult }
  /** Ends all processes in the sandbox. Answers when a command can run again. */
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
 * Calls that stream bytes, in one direction or both. Where the body is the client's own, the arguments travel in a
 * header, so they must be small. Status, headers and body of the answer are the worker's, passed on as they are.
 */
export interface Streams {
  /** Starts a command and streams its events, as the client gets them. */
  execEvents: { args: StartExec }
  /** Follows a command from after an event, or from its start. */
  followExec: { args: OneExec & { lastEventId?: string | undefined } }
  writeStdin: { args: OneExec & { offset?: number | undefined; eof: boolean } }
  readOutput: { args: OneExec & { stream: 'stdout' | 'stderr'; range?: string | undefined } }
  /** The bytes of a file, or one range of them, under the conditions of RFC 9110. */
  readRaw: { args: InSandbox & FileName & ReadConditions }
  /** Some lines of a file, or a file with redacted secrets. Its length is not known in advance. */
  readShown: { args: Calls['viewFile']['args'] }
  /** Writes a file's new bytes. Answers a CreatedFile. */
  writeRaw: {
    args: InSandbox &
      FileName & {
        mode?: string | undefined
        overwrite: boolean
        ifMatch?: Tags | undefined
        /** Only a new file is written. */
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
  /** The ETag is needed, even for a large file. */
  isTagged: boolean
}

/** Exactly one of the two, as in the contract. */
export interface FileName {
  path?: string | undefined
  path_base64?: string | undefined
}

export interface StartExec extends InSandbox {
  execId: string
  /** How the client follows it: an answer at the end, events, or neither. It decides the default timeout. */
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
/** The name of the call or the stream that has this path. */
export const nameAt = (path: string) => /^\/(?:calls|streams)\/(\w+)$/.exec(path)?.[1]
/** The paths of WebSockets to a command and to a port. The API passes the client's connection on unchanged. */
export const attachPath = '/attach'
export const portPath = '/port'

/** The header with a stream's arguments, as JSON in base64url, if the body comes from the client. */
export const argsHeader = 'x-sandlot-args'
/** The header with the account of a call, against which its body is counted. */
export const accountHeader = 'x-sandlot-account'
/** Milliseconds after which the API counts a worker that does not answer as lost. */
export const livenessTimeoutHeader = 'x-sandlot-liveness-timeout-ms'
/** Present on a stream's answer whose body is a {@link CallProblem}. */
export const problemHeader = 'x-sandlot-problem'

/** An error for the client, as the worker sends it. */
export interface CallProblem {
  code: string
  detail: string
  members: Record<string, unknown>
  retryAfterSeconds?: number
}

/**
 * The code of a {@link CallProblem} that no client sees: the command of this Idempotency-Key runs, or ran, in another
 * worker. Its members are `exec_id` and `worker_id`.
 */
export const execElsewhere = 'exec_elsewhere'
