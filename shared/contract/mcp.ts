/**
 * The Model Context Protocol for agents: its endpoint and its tools. A tool is a route under another name; its schemas
 * are derived from the route's, so the two cannot differ.
 */
import * as z from 'zod'
import { account } from './account.ts'
import { type Endpoint, family } from './endpoint.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { grepSyntax } from './grep-pattern.ts'
import { limits } from './limits.ts'
import { sandboxes } from './sandboxes.ts'

/** Limits of one tool result, because a model pays for every character. */
export const toolLimits = {
  /** Characters of each stream of a command: half of it head, half tail. */
  outputCharacters: 30_000,
  /** Characters of a file's content; the rest is read with start_line. */
  contentCharacters: 60_000,
  /** Characters of a list as JSON. */
  listCharacters: 60_000,
} as const

/** How a tool call is resumed after its stream broke. Milliseconds. */
export const resumption = {
  /** How long its command keeps running without the client. */
  graceMs: 10_000,
  /** When the client should reconnect. */
  retryMs: 1_000,
} as const

const Message = z.looseObject({ jsonrpc: z.literal('2.0') })

export interface Tool {
  title: string
  /** For the model, which decides whether to call it. */
  description: string
  endpoint: Endpoint
  readOnly: boolean
  /** Whether it may delete or overwrite data. */
  destructive: boolean
  /** Whether repeating the call has no further effect. */
  idempotent: boolean
  /** Whether it reaches things outside the service, such as the internet. */
  openWorld: boolean
  /** Inputs of the route that make no sense for an agent. */
  without?: readonly string[]
  /** Inputs that the tool always requires, because their alternative is left out. */
  required?: readonly string[]
  /** Descriptions of inputs, where those of the route mention features that the tool lacks. */
  inputs?: Record<string, string>
  /** Replaces the route's defaults for inputs that the agent omits. */
  defaults?: Record<string, unknown>
  /** Added to every call. */
  always?: Record<string, unknown>
}

const reads = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const
const changes = { readOnly: false, destructive: true, idempotent: false, openWorld: false } as const
/** An agent cannot use names that are not UTF-8, and must not see redacted values. */
const named = { without: ['path_base64', 'reveal'] } as const

export const tools = {
  session_create: {
    title: 'Create a session',
    description:
      'Create a sandbox (a session): an isolated Linux machine that exists until expires_at at the latest. Create one, then pass its id as session_id to the other tools. Destroy it when done, because it counts against a quota.',
    endpoint: sandboxes.createSandbox,
    ...changes,
    destructive: false,
  },
  session_list: {
    title: 'List sessions',
    description:
      'List sessions, newest first: by default only active ones, with another state also ended ones.',
    endpoint: sandboxes.listSandboxes,
    ...reads,
    defaults: { state: 'active' },
  },
  session_get: {
    title: 'Get a session',
    description: 'Show one session: whether it is active, when it expires, and why it ended.',
    endpoint: sandboxes.getSandbox,
    ...reads,
  },
  session_reset: {
    title: 'Reset a session',
    description:
      'End all processes of a session, including those of exec, and keep its files. Use it after sandbox_exhausted: no processes or memory are left.',
    endpoint: sandboxes.resetSandbox,
    ...changes,
    idempotent: true,
  },
  session_destroy: {
    title: 'Destroy a session',
    description:
      'Destroy a session with all its files and processes. This cannot be undone. Repeating it is harmless.',
    endpoint: sandboxes.destroySandbox,
    ...changes,
    idempotent: true,
  },
  exec: {
    title: 'Run a command',
    description:
      'Run a command in a session and wait for its result. command is a list of arguments, which is run directly, or a string for /bin/sh -c. A command that fails is a result, not an error: check status and exit_code. It is killed after timeout_ms (60000 by default). Long output is truncated in the middle.',
    endpoint: exec.execCommand,
    ...changes,
    openWorld: true,
    without: ['background', 'tty', 'rows', 'columns', 'grace_ms', 'reveal'],
    inputs: { timeout_ms: 'At most the remaining lifetime of the session' },
    // A client that has disconnected never returns for its command, unless it can resume the stream.
    always: { grace_ms: 0 },
  },
  file_view: {
    title: 'Read a file',
    description:
      'Read a file of a session, or only its lines start_line to end_line. If truncated is true, continue with start_line.',
    endpoint: files.viewFile,
    ...reads,
    without: [...named.without, 'reveal'],
    required: ['path'],
  },
  file_create: {
    title: 'Write a file',
    description:
      'Write a whole file and create missing parent folders. Fails if the file exists, unless overwrite is true.',
    endpoint: files.createFile,
    ...changes,
    idempotent: true,
    ...named,
    required: ['path', 'content'],
  },
  file_edit: {
    title: 'Edit a file',
    description:
      'Replace exact text in a file. old must occur in it exactly once, including white space, unless replace_all is true.',
    endpoint: files.editFile,
    ...changes,
    ...named,
    inputs: { if_match: 'The sha256 from file_view; the edit fails if the file has changed' },
    required: ['path', 'old', 'new'],
  },
  file_list: {
    title: 'List a directory',
    description: 'List the entries of a directory, by default /workspace.',
    endpoint: files.listFiles,
    ...reads,
    ...named,
  },
  file_glob: {
    title: 'Find files by name',
    description: 'Find paths by a pattern such as **/*.ts with *, ?, [a-z], {a,b}, and ** for any depth.',
    endpoint: files.globFiles,
    ...reads,
    ...named,
  },
  file_grep: {
    title: 'Search in files',
    description: `Find lines that match pattern in all files below path; include restricts the files by a glob. pattern is ${grepSyntax}.`,
    endpoint: files.grepFiles,
    ...reads,
    ...named,
  },
  whoami: {
    title: 'Account and limits',
    description:
      'Show the account, its sandbox-hours of this month, and how many concurrent sessions it may have.',
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
    .meta({
      description: 'From the reply to initialize; a cancellation applies only to requests with the same id',
    }),
}

/** The id of a call (see api/mcp/ticket.ts) and the number of its event. */
export const mcpEventId = /^([\w-]{1,4000})\.(\d{1,9})$/

export const mcp = family({
  callMcp: {
    summary: 'Send a JSON-RPC message of the Model Context Protocol over streamable HTTP',
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
      accept: z.string().optional().meta({
        description:
          'Must accept application/json or text/event-stream; if it accepts events, a tool call returns them',
      }),
      'mcp-method': z
        .string()
        .max(200)
        .optional()
        .meta({ description: 'The method, since protocol version 2026-07-28' }),
      'mcp-name': z
        .string()
        .max(1_000)
        .optional()
        .meta({ description: 'The tool, since protocol version 2026-07-28' }),
      ...ofSession,
    }),
    bodyBytes: limits.bodyBytes,
    forLargerBody: 'Write a larger file in parts, with exec.',
    body: z.union(
      [Message, z.array(Message).min(1).max(limits.mcpMessages)],
      `must be a JSON-RPC 2.0 message, or a list of at most ${limits.mcpMessages}`,
    ),
    reply: z.union([Message, z.array(Message)]).meta({
      description: 'JSON-RPC messages: one, or a list for a list; for tools/call also as an event stream',
    }),
    alsoReply: 'text/event-stream',
    alsoStatus: 202,
    alsoEmpty: true,
    refusals: {
      400: 'Unknown message or protocol version',
      406: 'Accept excludes both application/json and text/event-stream',
    },
    errors: [],
  },
  resumeMcp: {
    summary: 'Resume the event stream of a tool call after its connection broke',
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
        .meta({ description: 'Id of the last event that was received; without it, the response is 405' }),
      ...ofSession,
    }),
    rawReply: 'text/event-stream',
    errors: ['method_not_allowed'],
  },
})
