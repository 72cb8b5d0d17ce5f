import * as z from 'zod'
import { endpoint, Id, listOf, Page, Time } from './endpoint.ts'
import { Text } from './sandboxes.ts'

/** Every raw key starts so. */
export const apiKeyPrefix = 'sandlot_live_'

const ApiKey = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    last_four: z.string(),
    created_at: Time,
    expires_at: Time.nullable(),
    last_used_at: Time.nullable().meta({ description: 'To the minute' }),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.infer<typeof ApiKey>

const NewApiKey = ApiKey.omit({ last_used_at: true })
  .extend({ key: z.string().meta({ description: 'The raw key: shown this once' }) })
  .meta({ id: 'NewApiKey' })
export type NewApiKey = z.infer<typeof NewApiKey>

export const createApiKey = endpoint('createApiKey', {
  summary: 'Create an API key',
  body: z.strictObject({
    name: Text.trim().min(1).max(100).optional(),
    expires_at: z.iso.datetime({ offset: true }).optional(),
  }),
  reply: NewApiKey,
  errors: [],
})

export const listApiKeys = endpoint('listApiKeys', {
  summary: "List the account's API keys",
  query: Page,
  reply: listOf(ApiKey),
  errors: [],
})

export const revokeApiKey = endpoint('revokeApiKey', {
  summary: 'Revoke an API key',
  params: z.object({ key_id: Id }),
  errors: ['not_found'],
})
