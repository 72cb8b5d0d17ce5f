/** The MCP tools. The schemas of each tool are derived from the schemas of its route. */
import * as z from 'zod'
import { account } from './account.ts'
import { type Endpoint, family } from './endpoint.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { grepSyntax } from './grep-pattern.ts'
import { limits } from './limits.ts'
import { sandboxes } from './sandboxes.ts'

/** Size limits for one tool result. Every character of a result costs the model tokens. */
export const toolLimits = {
  /** Maximum length of stdout or stderr. The middle of longer output is omitted. */
  outputCharacters: 30_000,
  /** Maximum length of a file's content. Agents read the rest with start_line. */
  contentCharacters: 60_000,
  /** Maximum length of a list serialized as JSON. Items that do not fit are omitted. */
  listCharacters: 60_000,
} as const

/** Timing for resuming a tool call whose stream has broken. */
export const resumption = {
  /** How long a command keeps running after its client has disconnected. */
  graceMs: 10_000,
  /** Delay after which the client should reconnect. */
  retryMs: 1_000,
} as const

const Message = z.looseObject({ jsonrpc: z.literal('2.0') })

export interface Tool {
  title: string
  /** Description that the model reads to decide whether to call the tool. */
  description: string
  endpoint: Endpoint
  readOnly: boolean
  /** Whether the tool may delete or overwrite data. */
  destructive: boolean
  /** Whether a second call with the same arguments has no further effect. */
  idempotent: boolean
  /** Whether the tool interacts with systems outside the service, such as the internet. */
  openWorld: boolean
  without?: readonly string[]
  /** Inputs that the tool always requires, although they are optional in the route. */
  required?: readonly string[]
  /** Input descriptions that replace those of the route, because the tool lacks some of its features. */
  inputs?: Record<string, string>
  /** Default values that override the route's defaults. */
  defaults?: Record<string, unknown>
  always?: Record<string, unknown>
}

const reads = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const
const changes = { readOnly: false, destructive: true, idempotent: false, openWorld: false } as const
/** Omits inputs from the file tools: agents cannot use non-UTF-8 paths, and `reveal` could show secrets. */
const named = { without: ['path_base64', 'reveal'] } as const

export const tools = {
  session_create: {
    title: 'Create a session',
    description:
      'Create a session: an isolated Linux sandbox that exists until expires_at at the latest. Pass its id as session_id to the other tools. Destroy the session when you are done, because it counts against a quota.',
    endpoint: sandboxes.createSandbox,
    ...changes,
    destructive: false,
    without: ['idle_timeout_seconds'],
  },
  session_list: {
    title: 'List sessions',
    description:
      'List sessions, newest first. Only active sessions are listed, unless state is set to destroyed or all.',
    endpoint: sandboxes.listSandboxes,
    ...reads,
    defaults: { state: 'active' },
    without: ['name', 'image', 'metadata', 'created_after', 'order'],
  },
  session_get: {
    title: 'Get a session',
    description: 'Show whether a session is active, when it expires, and why it ended.',
    endpoint: sandboxes.getSandbox,
    ...reads,
  },
  session_reset: {
    title: 'Reset a session',
    description:
      'End all processes in a session, including running commands, and keep its files. Use this tool after a sandbox_exhausted error about processes or memory.',
    endpoint: sandboxes.resetSandbox,
    ...changes,
    idempotent: true,
  },
  session_destroy: {
    title: 'Destroy a session',
    description:
      'Destroy a session with all its files and processes. This cannot be undone. Repeating the call is harmless.',
    endpoint: sandboxes.destroySandbox,
    ...changes,
    idempotent: true,
  },
  exec: {
    title: 'Run a command',
    description:
      'Run a command in a session and wait for its result. command is a list of arguments to execute directly, or a string for /bin/sh -c. A command that fails returns a result, not an error, so check status and exit_code. The command is killed after timeout_ms (60000 by default). Long output is truncated in the middle.',
    endpoint: exec.execCommand,
    ...changes,
    openWorld: true,
    without: [
      ...['background', 'tty', 'rows', 'columns', 'grace_ms', 'reveal'],
      ...['stdin_base64', 'output_encoding'],
    ],
    inputs: {
      timeout_ms: 'Maximum run time in milliseconds, at most the remaining lifetime of the session',
    },
    // A disconnected client cannot get the result of its command, unless the client can resume the stream.
    always: { grace_ms: 0 },
  },
  file_view: {
    title: 'Read a file',
    description:
      'Read a file in a session, or only its lines start_line to end_line. If truncated is true, continue with start_line.',
    endpoint: files.viewFile,
    ...reads,
    ...named,
    required: ['path'],
  },
  file_create: {
    title: 'Write a file',
    description:
      'Write a file and create missing parent directories. The call fails if the file exists, unless overwrite is true.',
    endpoint: files.createFile,
    ...changes,
    idempotent: true,
    ...named,
    required: ['path', 'content'],
  },
  file_edit: {
    title: 'Edit a file',
    description:
      'Replace exact text in a file. old must match exactly, including whitespace, and occur only once, unless replace_all is true.',
    endpoint: files.editFile,
    ...changes,
    ...named,
    inputs: { if_match: 'The sha256 from file_view. The edit fails if the file has changed since' },
    required: ['path', 'old', 'new'],
  },
  file_list: {
    title: 'List a directory',
    description: 'List the entries of a directory. The default is /workspace.',
    endpoint: files.listFiles,
    ...reads,
    without: [...named.without, 'depth'],
  },
  file_glob: {
    title: 'Find files by name',
    description:
      'Find paths that match a glob pattern such as **/*.ts. The pattern supports *, ?, [a-z], {a,b}, and ** for any depth.',
    endpoint: files.globFiles,
    ...reads,
    ...named,
  },
  file_grep: {
    title: 'Search in files',
    description: `Search all files under \`path\` for lines that match \`pattern\`. \`include\` is a glob that limits which files are searched. \`pattern\` is ${grepSyntax}.`,
    endpoint: files.grepFiles,
    ...reads,
    ...named,
  },
  whoami: {
    title: 'Account and limits',
    description:
      'Show the account, the sandbox-hours it has used this month, and its limit on concurrent sessions.',
    endpoint: account.getAccount,
    ...reads,
  },
} as const satisfies Record<string, Tool>

export type ToolName = keyof typeof tools

const ofSession = {
  'mcp-protocol-version': z.string().optional(),
  'mcp-session-id': z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters')
    .optional()
    .describe(
      'The session id from the reply to initialize. A cancellation applies only to requests with the same session id',
    ),
}

/**
 * Matches the ID of an MCP event: the encoded data of the call (api/mcp/ticket.ts), followed by the number of
 * the event.
 */
export const mcpEventId = /^([\w-]{1,4000})\.(\d{1,9})$/

export const mcp = family({
  callMcp: {
    summary: 'Send a JSON-RPC message of the Model Context Protocol (Streamable HTTP)',
    method: 'POST',
    path: '/v1/mcp',
    repeat: 'no',
    example: {
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      client: 'sandlot mcp serve',
    },
    credential: 'key',
    scope: 'run',
    bucket: 'mcp',
    headers: z.object({
      accept: z
        .string()
        .optional()
        .describe(
          'Must accept application/json or text/event-stream. If it accepts text/event-stream, a tool call returns events',
        ),
      'mcp-method': z
        .string()
        .max(200)
        .optional()
        .describe('The JSON-RPC method, sent by clients of protocol version 2026-07-28 or later'),
      'mcp-name': z
        .string()
        .max(1_000)
        .optional()
        .describe('The tool name, sent by clients of protocol version 2026-07-28 or later'),
      ...ofSession,
    }),
    bodyBytes: limits.bodyBytes,
    forLargerBody: 'Write a larger file in several steps with exec.',
    body: z.union(
      [Message, z.array(Message).min(1).max(limits.mcpMessages)],
      `must be a JSON-RPC 2.0 message, or a list of at most ${limits.mcpMessages} such messages`,
    ),
    reply: z
      .union([Message, z.array(Message)])
      .describe(
        'A JSON-RPC message, or a list of messages if the request was a list. Replies to tools/call may also be an event stream',
      ),
    alsoReply: 'text/event-stream',
    alsoStatus: 202,
    alsoEmpty: true,
    refusals: {
      400: 'The message or protocol version is unknown',
      406: 'The Accept header excludes both application/json and text/event-stream',
    },
  },
  resumeMcp: {
    summary: 'Resume the event stream of a tool call after the connection has broken',
    method: 'GET',
    path: '/v1/mcp',
    example: { headers: { 'last-event-id': 'eyJyZXF1ZXN0SWQiOjd9.3' } },
    credential: 'key',
    scope: 'run',
    bucket: 'mcp',
    headers: z.object({
      'last-event-id': z
        .string()
        .regex(mcpEventId, 'must be the id of an event of /v1/mcp')
        .optional()
        .describe('The id of the last received event. Without this header, the response is 405'),
      ...ofSession,
    }),
    rawReply: 'text/event-stream',
    errors: ['method_not_allowed'],
  },
})
