/**
 * What the API asks of the worker that holds a sandbox, and waits for: commands and files. These
 * are no durable work and may be large, so they travel over HTTP between the two, and Redis only
 * says who is there. ARCHITECTURE.md tells what was measured and why.
 *
 * A call is handed over in two steps: the worker first says that it is there (100 Continue), only
 * then is the body sent. A worker that froze meanwhile never gets a command that its API has given up.
 */
import type { Input } from '../contract/endpoint.ts'
import type { ExecRequest, ExecResult } from '../contract/exec.ts'
import type { CreatedFile, editFile, FileView, globFiles, grepFiles, listFiles } from '../contract/files.ts'

/** JSON in, JSON out. */
export interface Calls {
  /** Starts a command, and answers when it has ended; at once for one in the background. */
  exec: { args: StartExec; result: ExecResult }
  /** A command that was started before: its result so far, or at its end. */
  getExec: { args: OneExec & { wait: boolean }; result: ExecResult }
  stopExec: { args: OneExec & { signal: string }; result: ExecResult }
  viewFile: {
    args: InSandbox &
      FileName & {
        startLine?: number | undefined
        endLine?: number | undefined
        reveal?: 'true' | 'false' | undefined
      }
    result: FileView
  }
  createFile: {
    args: InSandbox &
      FileName & {
        content: string
        encoding: 'utf-8' | 'base64'
        mode?: string | undefined
        overwrite: boolean
      }
    result: CreatedFile
  }
  editFile: {
    args: InSandbox & FileName & Pick<Input<typeof editFile.body>, 'old' | 'new' | 'replace_all' | 'if_match'>
    result: Input<typeof editFile.reply>
  }
  listFiles: { args: InSandbox & FileName; result: Input<typeof listFiles.reply> }
  globFiles: { args: InSandbox & FileName & { pattern: string }; result: Input<typeof globFiles.reply> }
  grepFiles: {
    args: InSandbox &
      FileName & { pattern: string; include?: string | undefined; ignoreCase: boolean; fixed: boolean }
    result: Input<typeof grepFiles.reply>
  }
}
export type CallName = keyof Calls

/**
 * Bytes as they come, in one direction or both. The arguments travel in a header where the body
 * is the client's own, so they must be small there; status, headers and body of the answer are
 * the worker's, passed on as they are.
 */
export interface Streams {
  /** Starts a command and follows it: its events, as the client gets them. */
  execEvents: { args: StartExec; upload: false }
  /** Follows a command from behind an event, or from its start. */
  followExec: { args: OneExec & { lastEventId?: string | undefined }; upload: false }
  writeStdin: { args: OneExec & { offset?: number | undefined; eof: boolean }; upload: true }
  readOutput: { args: OneExec & { stream: 'stdout' | 'stderr'; range?: string | undefined }; upload: false }
  /** The bytes of a file, or one range of them. */
  readRaw: { args: InSandbox & FileName & { range?: string | undefined }; upload: false }
  /** A file's new bytes; answers a CreatedFile. */
  writeRaw: {
    args: InSandbox &
      FileName & { mode?: string | undefined; overwrite: boolean; ifMatch?: string | undefined }
    upload: true
  }
}
export type StreamCallName = keyof Streams

export interface InSandbox {
  sandboxId: string
  accountId: string
  requestId: string
}

/** Exactly one of the two, as in the contract. */
export interface FileName {
  path?: string | undefined
  path_base64?: string | undefined
}

export interface StartExec extends InSandbox {
  execId: string
  /** How its client follows it, which decides the default of its time: an answer at the end, events, or neither. */
  mode: 'json' | 'events' | 'background'
  request: ExecRequest
  /** Whether the account has an allowlist, so that no variable may steer what the command becomes. */
  isListed?: boolean
  idempotencyKey?: string | undefined
}

export interface OneExec extends InSandbox {
  execId: string
}

export const callPath = (name: CallName) => `/calls/${name}`
export const streamPath = (name: StreamCallName) => `/streams/${name}`
/** A WebSocket: the API hands the client's connection on as it is. */
export const attachPath = '/attach'

/** Base64url of the JSON of a stream's arguments, when its body is the client's. */
export const argsHeader = 'x-sandlot-args'
/** Present on an answer of a stream whose body is a {@link CallProblem}. */
export const problemHeader = 'x-sandlot-problem'

/** How a worker tells of a failure that is a client's to see. */
export interface CallProblem {
  code: string
  detail: string
  members: Record<string, unknown>
  retryAfterSeconds?: number
}

/**
 * The code of a {@link CallProblem} that no client sees: this Idempotency-Key's command runs in
 * another worker, or ran. Its members are `exec_id` and `worker_id`.
 */
export const execElsewhere = 'exec_elsewhere'
