import * as z from 'zod'
import { Range } from './conditions.ts'
import { ById, family, Id, idempotencyKey, listOf, Page, Switch, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { bytes, bytesOf, Content, Environment, pathBytes, Text, whole, withMaxBytes } from './texts.ts'

const argument = (least: number) => bytes(Text, least, limits.argumentBytes)

const execStatuses = ['exited', 'signaled', 'timed_out', 'killed', 'lost', 'running'] as const

export const ExecRequest = z
  .strictObject({
    command: z
      .union(
        [argument(1), z.array(argument(0)).min(1).max(10_000)],
        'must be a list of arguments or a shell string',
      )
      .refine(
        (command) => bytesOf([command].flat()) <= limits.argumentsBytes,
        `must have at most ${limits.argumentsBytes} bytes together`,
      )
      .meta({
        description: 'A list is an argv and runs as it is; a string runs with /bin/sh -c',
        ...withMaxBytes(limits.argumentsBytes),
      }),
    cwd: bytes(Text, 1, pathBytes)
      .optional()
      .meta({
        description:
          'Relative to /workspace, or absolute. Default /workspace; where that cannot be entered, /, and ' +
          '`reason` of the result says so',
      }),
    env: Environment.optional(),
    stdin: Content.optional().meta({ description: 'UTF-8 text' }),
    timeout_ms: z.int().min(1).optional().meta({
      description:
        'At most what is left of the sandbox. Default 60000; for streams, background and interactive commands the life of the sandbox',
    }),
    background: z.boolean().optional().meta({ description: '202 with the id at once' }),
    grace_ms: z
      .int()
      .min(0)
      .max(limits.graceMs.most)
      .optional()
      .meta({
        description:
          'How long a foreground command outlives a client that left; default 2000. One in the background ' +
          '(without tty) that is given one is killed once no stream of events and no attachment has followed ' +
          'it for so long, counted from its start too; without, it lives by itself',
      }),
    tty: z
      .boolean()
      .optional()
      .meta({ description: 'With a terminal, to be attached to; implies background' }),
    reveal: z
      .boolean()
      .optional()
      .meta({ description: 'Secrets in the output are shown as they are, not as `[secret NAME]`' }),
    rows: z.int().min(1).max(1000).optional(),
    columns: z.int().min(1).max(1000).optional(),
  })
  .refine(
    ({ command, env }) =>
      bytesOf([command].flat()) + bytesOf(Object.entries(env ?? {}).flat()) <= limits.argumentsBytes,
    `the command and its environment must have at most ${limits.argumentsBytes} bytes together`,
  )
export type ExecRequest = z.infer<typeof ExecRequest>

export const ExecResult = z
  .object({
    id: z.string(),
    status: z.enum(execStatuses).meta({
      description:
        'exited and signaled were observed. lost: the exit status was not observed, because a connection failed or ' +
        'something in the sandbox ended the shell that waits for the command',
    }),
    exit_code: z.int().nullable().meta({ description: 'null when the command did not end by itself' }),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: z.int().meta({ description: 'All that was printed, also when it was cut' }),
    stderr_bytes: z.int(),
    truncated: z.boolean().meta({
      description:
        'stdout or stderr is not all that was printed: a part was left out of the middle, or its end did not come',
    }),
    lossy: z.boolean().meta({
      description:
        'Some bytes are not UTF-8, and stdout or stderr shows \ufffd for them; …/output has the bytes',
    }),
    started_at: Time,
    duration_ms: z.number(),
    reason: z
      .string()
      .nullable()
      .meta({
        description:
          'Why it was killed: the destroy_reason of its sandbox, or words. Why its exit status was not observed (lost). ' +
          'Where it ended by itself: ' +
          'that it ran in / because /workspace could not be entered, or that the end of its stderr did not come',
      }),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof ExecResult>
/** The result without its output, as events and rows carry it. */
export type ExecOutcome = Omit<ExecResult, 'stdout' | 'stderr' | 'lossy'>

/** Whom every route that works inside a sandbox takes, and the bucket that it counts against. */
export const inside = { credential: 'key', scope: 'run', bucket: 'sandbox_ops' } as const
/** Their error codes. */
export const insideErrors = [
  'not_found',
  'sandbox_starting',
  'sandbox_destroyed',
  'sandbox_exhausted',
  'account_suspended',
] as const

const ByExec = z.object({ id: Id, exec_id: Id })
const execErrors = [...insideErrors, 'exec_not_found'] as const

/** A command in a list: its result without the output, and its command line. */
export const ExecSummary = ExecResult.omit({ stdout: true, stderr: true, lossy: true })
  .extend({
    command: z.string().meta({ description: 'As one line, cut to some hundred characters' }),
    background: z.boolean(),
    tty: z.boolean(),
  })
  .meta({ id: 'ExecSummary' })
export type ExecSummary = z.infer<typeof ExecSummary>

export const execSignals = [
  'HUP',
  'INT',
  'QUIT',
  'KILL',
  'USR1',
  'USR2',
  'TERM',
  'CONT',
  'STOP',
  'TSTP',
  'WINCH',
] as const

export const exec = family({
  execCommand: {
    summary: 'Run a command in a sandbox',
    method: 'POST',
    path: '/v1/sandboxes/:id/exec',
    repeat: 'keyed',
    example: {
      body: { command: ['uname', '-a'], timeout_ms: 10_000 },
      client: 'sandlot exec --timeout 10s -- uname -a',
    },
    ...inside,
    params: ById,
    headers: z.object({
      'idempotency-key': idempotencyKey(
        'A repeated request attaches to the command that runs under this key',
      ),
      accept: z.string().optional().meta({ description: '`text/event-stream` for events as they come' }),
    }),
    bodyBytes: limits.bodyBytes,
    forLargerBody: 'Send more stdin with POST exec/:exec_id/stdin, and a script with PUT files/raw.',
    body: ExecRequest,
    reply: ExecResult,
    alsoReply: 'text/event-stream',
    alsoStatus: 202,
    errors: [...insideErrors, 'command_not_allowed', 'idempotency_conflict'],
  },
  listExecs: {
    summary: "List a sandbox's commands, newest first",
    method: 'GET',
    path: '/v1/sandboxes/:id/exec',
    example: { client: 'sandlot ps' },
    ...inside,
    params: ById,
    query: Page,
    reply: listOf(ExecSummary),
    errors: ['not_found'],
  },
  getExec: {
    summary: 'The result of a command so far',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    example: { client: 'sandlot logs "$EXEC_ID" --json' },
    ...inside,
    params: ByExec,
    reply: ExecResult,
    errors: ['not_found', 'exec_not_found'],
  },
  streamExec: {
    summary: 'The events of a command: start, stdout, stderr, gap, exit',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/stream',
    example: { client: 'sandlot logs --follow "$EXEC_ID"' },
    ...inside,
    params: ByExec,
    headers: z.object({
      'last-event-id': z
        .string()
        .regex(/^\d{1,16}-\d{1,16}$/, 'must be the id of an event')
        .optional()
        .meta({ description: 'Goes on behind this event' }),
    }),
    rawReply: 'text/event-stream',
    errors: execErrors,
  },
  writeExecStdin: {
    summary: 'Feed a background command: bytes that begin at `offset` of its stdin',
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    repeat: 'no',
    example: { query: { eof: 'true' }, file: 'input.txt' },
    ...inside,
    params: ByExec,
    query: z.strictObject({
      offset: whole(0).optional().meta({ description: 'Default: where it stands' }),
      eof: Switch.meta({ description: '`true` closes stdin behind these bytes' }),
    }),
    rawBody: true,
    reply: z.object({
      offset: z.int().meta({ description: 'Where the next bytes belong' }),
      eof: z.boolean(),
    }),
    errors: [...execErrors, 'exec_finished', 'stdin_offset_conflict'],
  },
  readExecOutput: {
    summary: 'The raw bytes of one stream that are kept, or a Range of them',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/output',
    example: { query: { stream: 'stderr' }, client: 'sandlot logs "$EXEC_ID"' },
    ...inside,
    params: ByExec,
    query: z.strictObject({ stream: z.enum(['stdout', 'stderr']).default('stdout') }),
    headers: z.object({ range: Range }),
    rawReply: 'application/octet-stream',
    errors: [...execErrors, 'range_not_satisfiable'],
  },
  stopExec: {
    summary: "Signal a command's process group; TERM, the default, is followed by KILL after 2 s",
    method: 'DELETE',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    repeat: 'no',
    example: { query: { signal: 'INT' }, client: 'sandlot kill --signal INT "$EXEC_ID"' },
    ...inside,
    params: ByExec,
    query: z.strictObject({ signal: z.enum(execSignals).default('TERM') }),
    reply: ExecResult,
    errors: [...execErrors, 'exec_finished'],
  },
  attachExec: {
    summary:
      'A WebSocket to a command: binary frames are stdin and output, 64 KiB a message to it; text frames are JSON',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id/attach',
    example: { client: 'sandlot attach "$EXEC_ID"' },
    ...inside,
    status: 101,
    params: ByExec,
    rawReply: 'websocket',
    errors: [...execErrors, 'exec_finished'],
  },
})
