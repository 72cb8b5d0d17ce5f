/**
 * What agents get over the Model Context Protocol: the endpoint and its tools. A tool is a route under another name;
 * its schemas are made of the route's, so the two cannot differ.
 */
import * as z from 'zod'
import { account } from './account.ts'
import { type Endpoint, family } from './endpoint.ts'
import { exec } from './exec.ts'
import { files } from './files.ts'
import { grepSyntax } from './grep-pattern.ts'
import { limits } from './limits.ts'
import { sandboxes } from './sandboxes.ts'

/** The most that one answer of a tool holds: a model pays for every character. */
export const toolLimits = {
  /** Characters of each stream of a command: half of it head, half tail. */
  outputCharacters: 30_000,
  /** Characters of a file's content; the rest is read with start_line. */
  contentCharacters: 60_000,
  /** Characters of a list as JSON. */
  listCharacters: 60_000,
} as const

/** How a tool call goes on when its stream breaks. Milliseconds. */
export const resumption = {
  /** How long its command waits for the client to come back. */
  graceMs: 10_000,
  /** When the client is to come back. */
  retryMs: 1_000,
} as const

const Message = z.looseObject({ jsonrpc: z.literal('2.0') })

export interface Tool {
  title: string
  /** For the model, which decides whether to call it. */
  description: string
  endpoint: Endpoint
  readOnly: boolean
  /** Whether it may undo or overwrite what was there. */
  destructive: boolean
  /** Whether the same call again changes nothing more. */
  idempotent: boolean
  /** Whether it reaches things outside the service, such as the internet. */
  openWorld: boolean
  /** Inputs of the route that make no sense for an agent. */
  without?: readonly string[]
  /** Inputs that the tool always requires, because their alternative is left out. */
  required?: readonly string[]
  /** What a model is told of an input, where the route's words are about more than the tool has. */
  inputs?: Record<string, string>
  /** Sent where the agent says nothing, in place of the route's default. */
  defaults?: Record<string, unknown>
  /** Sent along with every call. */
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
      'Create a sandbox (a session): an isolated Linux machine that lives until expires_at at most. Do it once, then pass its id as session_id to the other tools. Destroy it when you are done: it counts against a quota.',
    endpoint: sandboxes.createSandbox,
    ...changes,
    destructive: false,
  },
  session_list: {
    title: 'List sessions',
    description:
      'List the sessions that can be used, newest first; with another state also those that ended.',
    endpoint: sandboxes.listSandboxes,
    ...reads,
    defaults: { state: 'active' },
  },
  session_get: {
    title: 'Look at a session',
    description: 'Show one session: whether it is active, when it expires, why it ended.',
    endpoint: sandboxes.getSandbox,
    ...reads,
  },
  session_reset: {
    title: 'Reset a session',
    description:
      'End all processes of a session, of exec too, and keep its files. For sandbox_exhausted: a session that has no processes or memory left.',
    endpoint: sandboxes.resetSandbox,
    ...changes,
    idempotent: true,
  },
  session_destroy: {
    title: 'Destroy a session',
    description:
      'Destroy a session with all its files and processes. It cannot be undone; again is no error.',
    endpoint: sandboxes.destroySandbox,
    ...changes,
    idempotent: true,
  },
  exec: {
    title: 'Run a command',
    description:
      'Run a command in a session and wait for its end. command is a list of arguments that runs as it is, or a string for /bin/sh -c. A command that fails is a result, not an error: look at status and exit_code. It is ended after timeout_ms (60000 by default). Long output is cut in the middle.',
    endpoint: exec.execCommand,
    ...changes,
    openWorld: true,
    without: ['background', 'tty', 'rows', 'columns', 'grace_ms', 'reveal'],
    inputs: { timeout_ms: 'At most what is left of the session' },
    // A client that leaves does not come back for its command, but for one that can take up its stream.
    always: { grace_ms: 0 },
  },
  file_view: {
    title: 'Read a file',
    description:
      'Read a file of a session, or the lines start_line to end_line of it. When truncated is true, read on with start_line.',
    endpoint: files.viewFile,
    ...reads,
    without: [...named.without, 'reveal'],
    required: ['path'],
  },
  file_create: {
    title: 'Write a file',
    description:
      'Write a file whole, folders on its way included. One that exists is refused unless overwrite is true.',
    endpoint: files.createFile,
    ...changes,
    idempotent: true,
    ...named,
    required: ['path', 'content'],
  },
  file_edit: {
    title: 'Edit a file',
    description:
      'Replace exact text in a file. old must be in it exactly once, white space included, unless replace_all is true.',
    endpoint: files.editFile,
    ...changes,
    ...named,
    inputs: { if_match: 'The sha256 that file_view gave, to change no other content' },
    required: ['path', 'old', 'new'],
  },
  file_list: {
    title: 'List a directory',
    description: 'List the entries of a directory, of /workspace without a path.',
    endpoint: files.listFiles,
    ...reads,
    ...named,
  },
  file_glob: {
    title: 'Find files by name',
    description: 'Find paths by a pattern such as **/*.ts: *, ?, [a-z], {a,b}, and ** for any depth.',
    endpoint: files.globFiles,
    ...reads,
    ...named,
  },
  file_grep: {
    title: 'Search in files',
    description: `Find lines that match pattern, in all files below path; include limits them by a glob. pattern is ${grepSyntax}.`,
    endpoint: files.grepFiles,
    ...reads,
    ...named,
  },
  whoami: {
    title: 'Account and limits',
    description: 'The account, the sandbox-hours it used this month, how many sessions it may have at once.',
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
    .meta({ description: 'As the answer to initialize gave it: whose request a cancellation means' }),
}

/** Which call, and which event of it: api/mcp/ticket.ts. */
export const mcpEventId = /^([\w-]{1,4000})\.(\d{1,9})$/

export const mcp = family({
  callMcp: {
    summary: 'The Model Context Protocol over streamable HTTP: a JSON-RPC message',
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
          'Must accept application/json or text/event-stream; a tool call is answered by events where it accepts them',
      }),
      'mcp-method': z.string().max(200).optional().meta({ description: 'From 2026-07-28 on: the method' }),
      'mcp-name': z.string().max(1_000).optional().meta({ description: 'From 2026-07-28 on: the tool' }),
      ...ofSession,
    }),
    bodyBytes: limits.bodyBytes,
    forLargerBody: 'Write a larger file in parts, with exec.',
    body: z.union(
      [Message, z.array(Message).min(1).max(limits.mcpMessages)],
      `must be a JSON-RPC 2.0 message, or a list of at most ${limits.mcpMessages}`,
    ),
    reply: z
      .union([Message, z.array(Message)])
      .meta({ description: 'JSON, a list for a list; or for tools/call an event stream of such messages' }),
    alsoReply: 'text/event-stream',
    alsoStatus: 202,
    alsoEmpty: true,
    refusals: {
      400: 'The message or its protocol version is not known',
      406: 'Accept excludes both application/json and text/event-stream',
    },
    errors: [],
  },
  resumeMcp: {
    summary: 'The rest of the event stream of a tool call, after the connection broke',
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
        .meta({ description: 'Of the last event that came; without it there is no stream: 405' }),
      ...ofSession,
    }),
    rawReply: 'text/event-stream',
    errors: ['method_not_allowed'],
  },
})
