/**
 * RPCs from the API to a worker. They use HTTP, so that a slow reader blocks the command and a disconnect is
 * noticed immediately. The API sends the body of a call only after the worker's `100 Continue`. A frozen
 * worker therefore never receives a command that the API has sent to another worker.
 */
import type { Tags } from '../contract/conditions.ts'
import type { Input } from '../contract/endpoint.ts'
import type { ExecRequest, ExecResult } from '../contract/exec.ts'
import type { fileChanges } from '../contract/file-changes.ts'
import type { FileStat, FileView, files } from '../contract/files.ts'

export interface Calls {
  exec: { args: StartExec; result: ExecResult }
  /** Returns the state of a command. With `wait`, waits until the command has exited. */
  getExec: { args: OneExec & { wait: boolean }; result: ExecResult }
  /** Returns the PIDs of the sandbox's commands that are running on this worker, by command ID. */
  runningPids: { args: InSandbox; result: Record<string, number | null> }
  stopExec: { args: OneExec & { signal: string }; result: ExecResult }
  /** Kills all processes in the sandbox, and waits until commands can run again. */
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
  createFile: FileCall<typeof files.createFile>
  editFile: FileCall<typeof files.editFile>
  listFiles: {
    args: InSandbox & FileName & { depth?: number | undefined }
    result: Input<typeof files.listFiles.reply>
  }
  statFile: { args: InSandbox & FileName; result: FileStat }
  globFiles: { args: InSandbox & FileName & { pattern: string }; result: Input<typeof files.globFiles.reply> }
  grepFiles: {
    args: InSandbox &
      FileName & { pattern: string; include?: string | undefined; ignoreCase: boolean; fixed: boolean }
    result: Input<typeof files.grepFiles.reply>
  }
  makeDirectory: FileCall<typeof fileChanges.makeDirectory>
  moveFile: FileCall<typeof fileChanges.moveFile>
  removeFile: FileCall<typeof fileChanges.removeFile>
  changeFileMode: FileCall<typeof fileChanges.changeFileMode>
}
/** A call whose arguments and result are the body and reply of an API endpoint. */
interface FileCall<E extends { body: unknown; reply: unknown }> {
  args: InSandbox & Input<E['body']>
  result: Input<E['reply']>
}
export type CallName = keyof Calls

/**
 * Calls whose request or response body is streamed. If the request body contains the client's data, the
 * arguments are sent in a header instead, so they must be small.
 */
export interface Streams {
  execEvents: { args: StartExec }
  followExec: { args: OneExec & { lastEventId?: string | undefined } }
  writeStdin: { args: OneExec & { offset?: number | undefined; eof: boolean } }
  readOutput: { args: OneExec & { stream: 'stdout' | 'stderr'; range?: string | undefined } }
  /** Reads a file or a byte range. Supports the conditional requests of RFC 9110. */
  readRaw: { args: InSandbox & FileName & ReadConditions }
  /** Reads a file, or only some of its lines. Redacts secrets unless `reveal` is `true`. */
  readShown: { args: Calls['viewFile']['args'] }
  /** Streams the changes under a path until the client disconnects. */
  watchFiles: { args: Calls['listFiles']['args'] }
  /** Writes the request body to a file. Returns a CreatedFile. */
  writeRaw: {
    args: InSandbox &
      FileName & {
        mode?: string | undefined
        overwrite: boolean
        ifMatch?: Tags | undefined
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
  /** Whether the response must include an ETag, even for a large file. */
  isTagged: boolean
}

/** A file path, as plain text or in base64. Exactly one field is set. */
export interface FileName {
  path?: string | undefined
  path_base64?: string | undefined
}

export interface StartExec extends InSandbox {
  execId: string
  /** How the output is returned. The default timeout depends on this mode. */
  mode: 'json' | 'events' | 'background'
  request: ExecRequest
  /** Whether the account has an allowlist. The worker then checks the sandbox's variables and the secrets. */
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
export const attachPath = '/attach'
export const portPath = '/port'

/**
 * Header that carries the arguments of a call as base64url-encoded JSON. Used for WebSockets, and for
 * streaming calls whose body contains the client's data.
 */
export const argsHeader = 'x-sandlot-args'
export const accountHeader = 'x-sandlot-account'
/** Header with the time after which the API considers an unresponsive worker lost, in milliseconds. */
export const livenessTimeoutHeader = 'x-sandlot-liveness-timeout-ms'
export const problemHeader = 'x-sandlot-problem'

export interface CallProblem {
  code: string
  detail: string
  members: Record<string, unknown>
  retryAfterSeconds?: number
}

/**
 * Error code for an Idempotency-Key whose command runs on another worker. The error contains `exec_id` and
 * `worker_id`, so that the API can call that worker. The client never receives this code.
 */
export const execElsewhere = 'exec_elsewhere'
