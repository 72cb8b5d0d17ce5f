import * as z from 'zod'
import { Scope } from './api-keys.ts'
import { cursorOf, family, listOf, Page, reading, Time } from './endpoint.ts'

const Account = z
  .object({
    id: z.string(),
    email: z.string(),
    created_at: Time,
    api_key: z
      .object({ id: z.string(), scope: Scope })
      .describe('The API key that authenticated this request'),
    usage: z.object({
      month: z.string().describe('The month in UTC, such as 2026-11'),
      milliseconds: z.int(),
      sandbox_hours: z.number(),
      limit: z.number().describe('Maximum number of sandbox-hours per month'),
    }),
    concurrent: z.object({ active: z.int(), limit: z.int() }),
    limits: z.object({
      sandbox_seconds: z.int().describe('Maximum TTL of a sandbox, in seconds'),
      sandbox_ops_per_minute: z.int(),
      sandbox_lifecycle_per_minute: z.int(),
    }),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof Account>

const SandboxUsage = z
  .object({
    id: z.string().describe('The id of the sandbox'),
    name: z.string().nullable(),
    created_at: Time,
    ready_at: Time.nullable(),
    destroyed_at: Time.nullable(),
    milliseconds: z.int().describe('Time billed in the month, in milliseconds'),
    seconds: z.number(),
  })
  .meta({ id: 'SandboxUsage' })
export type SandboxUsage = z.infer<typeof SandboxUsage>

const Month = z
  .string()
  .regex(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
  .describe('A month in UTC. The default is the current month')

export const account = family({
  getAccount: {
    summary: 'Get the account, its usage and its limits',
    method: 'GET',
    path: '/v1/account',
    example: { client: 'sandlot whoami' },
    ...reading,
    reply: Account,
  },
  getUsage: {
    summary:
      'List the usage of each sandbox in a month, newest sandbox first. Every page contains the total of the month',
    method: 'GET',
    path: '/v1/account/usage',
    example: { query: { month: '2026-11' }, client: 'sandlot whoami --usage --month 2026-11' },
    ...reading,
    query: Page.extend({ month: Month.optional(), cursor: cursorOf(/^\d{1,13}-sbx_[0-9a-z]{26}$/) }),
    reply: listOf(SandboxUsage).extend({
      month: z.string(),
      as_of: Time.describe('The time up to which running sandboxes are billed. It is the same on all pages'),
      total: z.object({ milliseconds: z.int(), sandbox_hours: z.number() }),
    }),
  },
})
