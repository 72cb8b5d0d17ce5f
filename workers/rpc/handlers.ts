/** Who serves which call. The compiler asks for every one. */
import type { CallName, StreamCallName } from '../../shared/rpc/calls.ts'
import { exec, getExec, stopExec } from '../exec/calls.ts'
import type { ExecContext } from '../exec/context.ts'
import { resetSandbox } from '../exec/reset.ts'
import { execEvents, followExec, readOutput, writeStdin } from '../exec/streams.ts'
import { editFile } from '../files/edit.ts'
import { grepFiles } from '../files/grep.ts'
import { globFiles, listFiles } from '../files/list.ts'
import { readRaw, readShown, viewFile } from '../files/read.ts'
import { createFile, writeRaw } from '../files/write.ts'
import type { CallHandler, StreamHandler } from '../sandbox/call.ts'

const calls: { [N in CallName]: CallHandler<N, ExecContext> } = {
  exec,
  getExec,
  stopExec,
  resetSandbox,
  viewFile,
  createFile,
  editFile,
  listFiles,
  globFiles,
  grepFiles,
}

const streams: { [N in StreamCallName]: StreamHandler<N, ExecContext> } = {
  execEvents,
  followExec,
  writeStdin,
  readOutput,
  readRaw,
  readShown,
  writeRaw,
}

export const handlers = { ...calls, ...streams }
