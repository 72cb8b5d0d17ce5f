import * as z from 'zod'
import { Range } from './conditions.ts'
import { ById, family, Id, idempotencyKey, listOf, Page, Switch, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import {
  base64Pattern,
  bytes,
  bytesOf,
  Content,
  Environment,
  isBase64,
  pathBytes,
  Text,
  whole,
  withMaxBytes,
} from './texts.ts'

const argument = (min: number) => bytes(Text, min, limits.argumentBytes)

const startErrors = ['not_found', 'not_executable', 'no_such_directory'] as const
export type StartError = (typeof startErrors)[number]

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
        `must have at most ${limits.argumentsBytes} bytes in total`,
      )
      .meta({
        description: 'A list of arguments is executed directly. A string is executed with /bin/sh -c',
        ...withMaxBytes(limits.argumentsBytes),
      }),
    cwd: bytes(Text, 1, pathBytes)
      .optional()
      .describe(
        'Working directory, absolute or relative to /workspace. The default is /workspace, or / if /workspace cannot be entered, as reported in `reason`',
      ),
    env: Environment.optional(),
    stdin: Content.optional().describe('UTF-8 text'),
    stdin_base64: z
      .string()
      .refine(isBase64, 'must be base64')
      .optional()
      .meta({
        description: 'Bytes in base64, in place of `stdin`',
        contentEncoding: 'base64',
        pattern: base64Pattern,
        examples: ['iVBORw0KGgo='],
      }),
    output_encoding: z
      .enum(['utf-8', 'base64'])
      .optional()
      .describe(
        'How results of this command contain stdout and stderr. The default is utf-8. base64 keeps bytes that are not UTF-8. Events are not affected',
      ),
    timeout_ms: z
      .int()
      .min(1)
      .optional()
      .describe(
        'Maximum run time, in milliseconds. It cannot exceed the remaining lifetime of the sandbox, which is also the default for streamed, background and interactive commands. For other commands, the default is 60000',
      ),
    background: z
      .boolean()
      .optional()
      .describe('Return 202 and the command id without waiting for the command'),
    grace_ms: z
      .int()
      .min(0)
      .max(limits.graceMs.max)
      .optional()
      .describe(
        'How long, in milliseconds, a foreground command keeps running after its client has disconnected. The default is 2000. If set for a background command without tty, the command is killed when no event stream or attachment has been open for this long, counted from its start or the last disconnect. By default, background commands need no client',
      ),
    tty: z
      .boolean()
      .optional()
      .describe('Run the command in a terminal to which clients can attach. Implies background'),
    reveal: z
      .boolean()
      .optional()
      .describe('Show the values of secrets in the output instead of `[secret NAME]`'),
    rows: z.int().min(1).max(1000).optional(),
    columns: z.int().min(1).max(1000).optional(),
  })
  .refine(
    ({ command, env }) =>
      bytesOf([command].flat()) + bytesOf(Object.entries(env ?? {}).flat()) <= limits.argumentsBytes,
    `the command and its environment must have at most ${limits.argumentsBytes} bytes in total`,
  )
  .refine(({ stdin, stdin_base64 }) => stdin === undefined || stdin_base64 === undefined, {
    path: ['stdin'],
    message: 'and stdin_base64 are mutually exclusive',
  })
  .meta({ not: { required: ['stdin', 'stdin_base64'] } })
export type ExecRequest = z.infer<typeof ExecRequest>

export const ExecResult = z
  .object({
    id: z.string(),
    pid: z
      .int()
      .nullable()
      .describe("Process ID in the sandbox's own PID namespace; null if it is not known"),
    status: z
      .enum(execStatuses)
      .describe(
        'exited and signaled mean that the exit status was observed. lost means that it was not observed, because a connection failed or something in the sandbox ended the shell that waits for the command',
      ),
    exit_code: z.int().nullable().describe('The exit code; null unless the command exited normally'),
    signal: z.string().nullable(),
    start_error: z
      .enum(startErrors)
      .nullable()
      .meta({
        description:
          'Why the command never ran, in addition to exit code 126 or 127: the program does not exist, it is a directory ' +
          'or not executable, or `cwd` cannot be entered. It is null if the program started, even if the program itself exits ' +
          'with 126 or 127, or if its interpreter is missing',
        examples: ['not_found'],
      }),
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: z
      .int()
      .describe('Number of bytes that the command printed, including bytes omitted from stdout'),
    stderr_bytes: z.int(),
    truncated: z
      .boolean()
      .describe(
        'Whether stdout or stderr is incomplete because its middle was omitted or its end was not received',
      ),
    lossy: z
      .boolean()
      .describe(
        'Whether stdout or stderr contains \ufffd in place of bytes that are not UTF-8. …/output returns the raw bytes',
      ),
    output_encoding: z
      .enum(['utf-8', 'base64'])
      .describe('The encoding of stdout and stderr, as requested when the command was started'),
    started_at: Time,
    duration_ms: z.number(),
    reason: z
      .string()
      .nullable()
      .describe(
        "For a killed command, the sandbox's destroy_reason or another explanation. For a lost command, the reason why its exit status was not observed. For any other command, a note that it ran in / because /workspace could not be entered, or that the end of its stderr was not received",
      ),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof ExecResult>
export type ExecOutcome = Omit<ExecResult, 'stdout' | 'stderr' | 'lossy' | 'output_encoding'>

/** Credential, scope and rate-limit bucket of all routes that operate inside a sandbox. */
export const inside = { credential: 'key', scope: 'run', bucket: 'sandbox_ops' } as const
export const insideErrors = [
  'not_found',
  'sandbox_starting',
  'sandbox_destroyed',
  'sandbox_exhausted',
  'account_suspended',
] as const

const ByExec = z.object({ id: Id, exec_id: Id })
const execErrors = [...insideErrors, 'exec_not_found'] as const

export const ExecSummary = ExecResult.omit({
  stdout: true,
  stderr: true,
  lossy: true,
  output_encoding: true,
})
  .extend({
    command: z.string().describe('The command as one line, truncated to a few hundred characters'),
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
        'A retry with the same key attaches to the command that the first request started',
      ),
      accept: z.string().optional().describe('`text/event-stream` streams the events of the command'),
    }),
    bodyBytes: limits.bodyBytes,
    forLargerBody: 'Send longer stdin with POST exec/:exec_id/stdin, and longer scripts with PUT files/raw.',
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
    summary: 'Get the result of a command. For a running command, get the result so far',
    method: 'GET',
    path: '/v1/sandboxes/:id/exec/:exec_id',
    example: { client: 'sandlot logs "$EXEC_ID" --json' },
    ...inside,
    params: ByExec,
    reply: ExecResult,
    errors: ['not_found', 'exec_not_found'],
  },
  streamExec: {
    summary: 'Stream the events of a command: start, stdout, stderr, gap and exit',
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
        .describe('The id of the last received event. The stream resumes after this event'),
    }),
    rawReply: 'text/event-stream',
    errors: execErrors,
  },
  writeExecStdin: {
    summary: "Write bytes to a background command's stdin, starting at `offset`",
    method: 'POST',
    path: '/v1/sandboxes/:id/exec/:exec_id/stdin',
    repeat: 'no',
    example: { query: { eof: 'true' }, file: 'input.txt' },
    ...inside,
    params: ByExec,
    query: z.strictObject({
      offset: whole(0)
        .optional()
        .describe('Position of the first byte. The default is the end of the data written so far'),
      eof: Switch.describe('`true` closes stdin after the bytes of this request'),
    }),
    rawBody: true,
    reply: z.object({
      offset: z.int().describe('Position at which the next write must start'),
      eof: z.boolean(),
    }),
    errors: [...execErrors, 'exec_finished', 'stdin_offset_conflict'],
  },
  readExecOutput: {
    summary: "Get the retained raw bytes of a command's stdout or stderr, or a Range of these bytes",
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
    summary: "Send a signal to a command's process group. TERM, the default, is followed by KILL after 2 s",
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
      'Attach to a command over a WebSocket. Binary frames contain output or stdin, and a stdin message can be at most 64 KiB long. Text frames are JSON',
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
