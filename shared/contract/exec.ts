import * as z from 'zod'
import { endpoint, Id, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { Environment, Text } from './sandboxes.ts'

const Argument = Text.refine(
  (text) => Buffer.byteLength(text) <= limits.argumentBytes,
  `must have at most ${limits.argumentBytes} bytes`,
)

const Path = Text.min(1).max(4096)

export const execStatuses = ['exited', 'signaled', 'timed_out', 'killed', 'lost', 'running'] as const

export const ExecRequest = z
  .strictObject({
    command: z
      .union(
        [Argument.min(1), z.array(Argument).min(1).max(10_000)],
        'must be a list of arguments or a shell string',
      )
      .meta({ description: 'A list is an argv and runs as it is; a string runs with /bin/sh -c' }),
    cwd: Path.optional().meta({ description: 'Relative to /workspace, or absolute' }),
    env: Environment.optional(),
    stdin: z.string().optional().meta({ description: 'UTF-8 text' }),
    timeout_ms: z
      .int()
      .min(1)
      .optional()
      .meta({ description: 'Default 60000; at most what is left of the sandbox' }),
  })
  .refine(
    ({ command, env }) =>
      bytesOf([command].flat()) + bytesOf(Object.entries(env ?? {}).flat()) <= limits.argumentsBytes,
    `the command and its environment must have at most ${limits.argumentsBytes} bytes together`,
  )
export type ExecRequest = z.infer<typeof ExecRequest>

const bytesOf = (texts: string[]) => texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)

export const ExecResult = z
  .object({
    id: z.string(),
    status: z.enum(execStatuses),
    exit_code: z.int().nullable().meta({ description: 'null when the command did not end by itself' }),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: z.int().meta({ description: 'All that was printed, also when it was cut' }),
    stderr_bytes: z.int(),
    truncated: z.boolean(),
    started_at: Time,
    duration_ms: z.number(),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof ExecResult>

/** What any route that works inside a sandbox may answer. */
export const insideErrors = [
  'not_found',
  'sandbox_starting',
  'sandbox_destroyed',
  'account_suspended',
] as const

export const execCommand = endpoint('execCommand', {
  summary: 'Run a command in a sandbox',
  params: z.object({ id: Id }),
  body: ExecRequest,
  reply: ExecResult,
  errors: insideErrors,
})
