/** The handlers of all RPCs. The compiler reports any RPC that has no handler. */
import { attachPath, portPath } from '../shared/rpc/calls.ts'
import { attach } from './exec/attach.ts'
import { exec, getExec, resetSandbox, runningPids, stopExec } from './exec/calls.ts'
import type { ExecContext } from './exec/context.ts'
import { execEvents, followExec, readOutput, writeStdin } from './exec/streams.ts'
import { changeFileMode, makeDirectory, moveFile, removeFile } from './files/change.ts'
import { editFile } from './files/edit.ts'
import { grepFiles } from './files/grep.ts'
import { globFiles, listFiles, statFile } from './files/list.ts'
import { readRaw, readShown, viewFile } from './files/read.ts'
import { watchFiles } from './files/watch.ts'
import { createFile, writeRaw } from './files/write.ts'
import type { CallHandlers, SocketHandlers } from './rpc/call.ts'
import { openPort } from './sandbox/port.ts'

export const calls: CallHandlers<ExecContext> = {
  exec,
  getExec,
  runningPids,
  stopExec,
  resetSandbox,
  viewFile,
  createFile,
  editFile,
  listFiles,
  statFile,
  globFiles,
  grepFiles,
  makeDirectory,
  moveFile,
  removeFile,
  changeFileMode,
  execEvents,
  followExec,
  writeStdin,
  readOutput,
  readRaw,
  readShown,
  watchFiles,
  writeRaw,
}

export const sockets: SocketHandlers<ExecContext> = { [attachPath]: attach, [portPath]: openPort }
