/** Who answers which call: the handlers that the files of each family export. The compiler asks for every one. */
import type { CallName, StreamCallName } from '../../shared/rpc/calls.ts'
import * as commands from '../exec/calls.ts'
import * as reset from '../exec/reset.ts'
import * as commandStreams from '../exec/streams.ts'
import * as edit from '../files/edit.ts'
import * as grep from '../files/grep.ts'
import * as list from '../files/list.ts'
import * as read from '../files/read.ts'
import * as write from '../files/write.ts'
import type { CallHandler, StreamHandler } from '../sandbox/call.ts'

const families = { ...commands, ...commandStreams, ...reset, ...edit, ...grep, ...list, ...read, ...write }

/** `never` for an export that is no handler: an API could call it. */
type HandlerOf<N> = N extends CallName ? CallHandler<N> : N extends StreamCallName ? StreamHandler<N> : never

export const handlers: { [N in CallName | StreamCallName | keyof typeof families]: HandlerOf<N> } = families
