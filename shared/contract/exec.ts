import * as z from 'zod'
import { Range } from './conditions.ts'
import { ById, family, Id, idempotencyKey, listOf, Page, Switch, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { bytes, bytesOf, Content, Environment, pathBytes, Text, whole, withMaxBytes } from './texts.ts'

const argument = (min: number) => bytes(Text, min, limits.argumentBytes)

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
        description: 'A list is run directly as an argv; a string is run with /bin/sh -c',
        ...withMaxBytes(limits.argumentsBytes),
      }),
    cwd: bytes(Text, 1, pathBytes)
      .optional()
      .meta({
        description:
          'Absolute, or relative to /workspace. The default is /workspace, or / if that cannot be entered; ' +
          '`reason` of the result reports this',
      }),
    env: Environment.optional(),
    stdin: Content.optional().meta({ description: 'UTF-8 text' }),
    timeout_ms: z.int().min(1).optional().meta({
      description:
        'At most the remaining lifetime of the sandbox, which is also the default for streams, background and interactive commands. For other commands, the default is 60000',
    }),
    background: z.boolean().optional().meta({ description: 'Respond immediately with 202 and the id' }),
    grace_ms: z
      .int()
      .min(0)
      .max(limits.graceMs.max)
      .optional()
      .meta({
        description:
          'How long a foreground command keeps running after its client has disconnected; default 2000. ' +
          'A background command (without tty) for which it is set is killed when no event stream or attachment ' +
          'has been open for this long, also counted from its start; otherwise it needs no client',
      }),
    tty: z
      .boolean()
      .optional()
      .meta({ description: 'Run in a terminal to which clients attach; implies background' }),
    reveal: z
      .boolean()
      .optional()
      .meta({ description: 'Show the values of secrets in the output instead of `[secret NAME]`' }),
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
    exit_code: z.int().nullable().meta({ description: 'null unless the command exited on its own' }),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: z
      .int()
      .meta({ description: 'All bytes that were printed, including those omitted from stdout' }),
    stderr_bytes: z.int(),
    truncated: z.boolean().meta({
      description:
        'stdout or stderr is incomplete: its middle was omitted, or the last part was not received',
    }),
    lossy: z.boolean().meta({
      description:
        'Some bytes are not UTF-8 and appear as \ufffd in stdout or stderr; …/output returns the raw bytes',
    }),
    started_at: Time,
    duration_ms: z.number(),
    reason: z
      .string()
      .nullable()
      .meta({
        description:
          'Why the command was killed: the destroy_reason of its sandbox, or a text. Why its exit status was not ' +
          'observed (lost). If it ended on its own: ' +
          'that it ran in / because /workspace could not be entered, or that the end of its stderr was not received',
      }),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof ExecResult>
/** The result without its output, as events and rows carry it. */
export type ExecOutcome = Omit<ExecResult, 'stdout' | 'stderr' | 'lossy'>

/** Credential, scope and bucket of the routes that work inside a sandbox. */
export const inside = { credential: 'key', scope: 'run', bucket: 'sandbox_ops' } as const
/** The error codes of these routes. */
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
    command: z.string().meta({ description: 'In one line, truncated to a few hundred characters' }),
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
        'A repeated request attaches to the command that was started with this key',
      ),
      accept: z.string().optional().meta({ description: '`text/event-stream` streams events as they occur' }),
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
    summary: 'Get the result of a command, or its result so far',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    example: { client: 'sandlot logs "$EXEC_ID" --json' },
    ...inside,
    params: ByExec,
    reply: ExecResult,
    errors: ['not_found', 'exec_not_found'],
  },
  streamExec: {
    summary: 'Stream the events of a command: start, stdout, stderr, gap, exit',
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
        .meta({ description: 'Resume after this event' }),
    }),
    rawReply: 'text/event-stream',
    errors: execErrors,
  },
  writeExecStdin: {
    summary: 'Write bytes to the stdin of a background command, beginning at `offset`',
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    repeat: 'no',
    example: { query: { eof: 'true' }, file: 'input.txt' },
    ...inside,
    params: ByExec,
    query: z.strictObject({
      offset: whole(0).optional().meta({ description: 'By default the end of the bytes written so far' }),
      eof: Switch.meta({ description: '`true` closes stdin after these bytes' }),
    }),
    rawBody: true,
    reply: z.object({
      offset: z.int().meta({ description: 'Offset for the next bytes' }),
      eof: z.boolean(),
    }),
    errors: [...execErrors, 'exec_finished', 'stdin_offset_conflict'],
  },
  readExecOutput: {
    summary: 'Get the retained raw bytes of one output stream, or a Range of them',
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
      'Attach to a command over a WebSocket: binary frames carry output, and stdin in messages of at most 64 KiB; text frames are JSON',
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
