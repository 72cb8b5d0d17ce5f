/** Who answers which call; the compiler asks for every one that shared/rpc/calls.ts names. */
import type { CallName, StreamCallName, Streams } from '../../shared/rpc/calls.ts'
import { exec, getExec, stopExec } from '../exec/calls.ts'
import { execEvents, followExec, readOutput, writeStdin } from '../exec/streams.ts'
import { createFile } from '../files/create.ts'
import { editFile } from '../files/edit.ts'
import { globFiles } from '../files/glob.ts'
import { grepFiles } from '../files/grep.ts'
import { listFiles } from '../files/ls.ts'
import { readRaw } from '../files/read-raw.ts'
import { makeTurns } from '../files/turns.ts'
import { viewFile } from '../files/view.ts'
import { writeRaw } from '../files/write-raw.ts'
import type { CallHandler, StreamHandler } from '../sandbox/call.ts'

/** Four file operations of a sandbox run at once: each holds megabytes, and has a process there. More wait. */
const inSandbox = makeTurns(4)

const oneOfFew =
  <N extends CallName>(call: CallHandler<N>): CallHandler<N> =>
  (args, worker, signal, isAwaited) =>
    inSandbox(args.sandboxId, async () => {
      // Does no work for a caller that hung up while it waited.
      signal.throwIfAborted()
      return await call(args, worker, signal, isAwaited)
    })

export const calls: { [N in CallName]: CallHandler<N> } = {
  exec,
  getExec,
  stopExec,
  viewFile: oneOfFew(viewFile),
  createFile: oneOfFew(createFile),
  editFile: oneOfFew(editFile),
  listFiles: oneOfFew(listFiles),
  globFiles: oneOfFew(globFiles),
  grepFiles: oneOfFew(grepFiles),
}

/** `upload`: the body is the client's, so the arguments are in a header. */
export const streams: { [N in StreamCallName]: { upload: Streams[N]['upload']; answer: StreamHandler<N> } } =
  {
    execEvents: { upload: false, answer: execEvents },
    followExec: { upload: false, answer: followExec },
    writeStdin: { upload: true, answer: writeStdin },
    readOutput: { upload: false, answer: readOutput },
    readRaw: { upload: false, answer: readRaw },
    writeRaw: { upload: true, answer: writeRaw },
  }
