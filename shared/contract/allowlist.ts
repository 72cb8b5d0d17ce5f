import * as z from 'zod'
import { changing, family, reading } from './endpoint.ts'
import { ExecRequest } from './exec.ts'
import { limits } from './limits.ts'
import { characters } from './texts.ts'

/** An allowlist entry. Whitespace is normalized to single spaces, and `*` matches any single argument. */
const Entry = characters(z.string(), 0, limits.allowlist.characters)
  .regex(/\S/, 'must name a command')
  .regex(/^(?:\t|[^\p{C}\p{Zl}\p{Zp}])*$/u, 'must be a single line without control characters')
  .regex(/^(?!\s*\*)/, 'must begin with a command name; to allow every command, clear the allowlist')
  .regex(
    /^(?!.*[^ \t]\*)(?!.*\*[^ \t])/,
    'contains a * inside a word; a * must be a separate word and matches one argument',
  )
  .transform((text) => text.trim().replace(/[ \t]+/g, ' '))
  .describe('A command and its required first arguments, such as `git status` or `npm run *`')

const Allowlist = z
  .object({
    commands: z
      .array(z.string())
      .nullable()
      .describe('The allowed commands; null if every command is allowed'),
    warnings: z
      .array(z.object({ entry: z.string(), message: z.string() }))
      .describe('Entries that allow a command that can itself run other commands'),
    refusals: z
      .array(z.object({ day: z.iso.date(), count: z.int() }))
      .describe(
        `Number of refused commands per day (UTC) in the last ${limits.refusalDays} days. Days without refusals are omitted`,
      ),
  })
  .meta({ id: 'Allowlist' })
export type Allowlist = z.infer<typeof Allowlist>

const AllowlistDecision = z
  .object({
    allowed: z.boolean(),
    entry: z.string().nullable().describe('The entry that allows the command; null if there is no allowlist'),
    reason: z.string().nullable().describe('The reason why the command would be refused'),
  })
  .meta({ id: 'AllowlistDecision' })

export const allowlist = family({
  getAllowlist: {
    summary: "Get the account's command allowlist",
    method: 'GET',
    path: '/v1/allowlist',
    example: { client: 'sandlot allowlist get' },
    ...reading,
    reply: Allowlist,
  },
  setAllowlist: {
    summary:
      'Replace the command allowlist. The new allowlist is in effect everywhere before the response is sent',
    method: 'PUT',
    path: '/v1/allowlist',
    repeat: 'yes',
    example: {
      body: { commands: ['git status', 'npm run *'] },
      client: "sandlot allowlist set 'git status' 'npm run *'",
    },
    ...changing,
    bodyBytes: 256 * 1024,
    body: z.strictObject({
      commands: z
        .array(Entry)
        .max(limits.allowlist.entries)
        .transform((entries) => [...new Set(entries)])
        .describe('The allowed commands. An empty list allows no commands'),
    }),
    reply: Allowlist,
  },
  clearAllowlist: {
    summary: 'Remove the command allowlist, so that every command is allowed',
    method: 'DELETE',
    path: '/v1/allowlist',
    repeat: 'yes',
    example: { client: 'sandlot allowlist clear' },
    ...changing,
    status: 204,
  },
  checkAllowlist: {
    summary: 'Check whether the allowlist permits a command, without running the command',
    method: 'POST',
    path: '/v1/allowlist/check',
    repeat: 'yes',
    example: { body: { command: ['git', 'push'] }, client: 'sandlot allowlist check -- git push' },
    ...reading,
    bodyBytes: limits.bodyBytes,
    body: z.strictObject({ command: ExecRequest.shape.command }),
    reply: AllowlistDecision,
  },
})
