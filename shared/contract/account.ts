import * as z from 'zod'
import { endpoint, Time } from './endpoint.ts'

const Account = z
  .object({
    id: z.string(),
    email: z.string(),
    created_at: Time,
    usage: z.object({
      month: z.string().meta({ description: 'UTC, such as 2026-11' }),
      milliseconds: z.int(),
      sandbox_hours: z.number(),
      limit: z.number().meta({ description: 'Sandbox-hours' }),
    }),
    concurrent: z.object({ active: z.int(), limit: z.int() }),
    limits: z.object({
      sandbox_seconds: z.int().meta({ description: 'The longest life of one sandbox' }),
      sandbox_ops_per_minute: z.int(),
      sandbox_lifecycle_per_minute: z.int(),
    }),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof Account>

export const getAccount = endpoint('getAccount', {
  summary: 'The account, its usage and its limits',
  reply: Account,
  errors: [],
})
