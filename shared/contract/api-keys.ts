import * as z from 'zod'
import { family, Id, listOf, Moment, Page, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { Name } from './texts.ts'

export const apiKeyPrefix = 'sandlot_live_'

export const Scope = z
  .enum(['full', 'run'])
  .describe(
    '`full` allows every request. `run` allows commands, files and sandboxes, but no changes to the allowlist or secrets',
  )

const ApiKey = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    scope: Scope,
    last_four: z.string(),
    created_at: Time,
    expires_at: Time.nullable(),
    last_used_at: Time.nullable().describe('When the key was last used, accurate to the minute'),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.infer<typeof ApiKey>

const NewApiKey = ApiKey.omit({ last_used_at: true })
  .extend({ key: z.string().describe('The secret key. It is returned only once') })
  .meta({ id: 'NewApiKey' })
export type NewApiKey = z.infer<typeof NewApiKey>

export const apiKeys = family({
  createApiKey: {
    summary: 'Create an API key',
    method: 'POST',
    path: '/v1/api-keys',
    repeat: 'no',
    example: { body: { name: 'ci', scope: 'run' }, client: 'sandlot keys create --name ci --scope run' },
    credential: 'token',
    bucket: 'changes',
    status: 201,
    body: z.strictObject({
      name: Name.optional(),
      expires_at: Moment.optional(),
      scope: Scope.default('full'),
    }),
    reply: NewApiKey,
    errors: ['api_key_limit_reached'],
  },
  listApiKeys: {
    summary: "List the account's API keys",
    method: 'GET',
    path: '/v1/api-keys',
    example: { client: 'sandlot keys ls' },
    credential: 'token',
    bucket: 'reads',
    query: Page,
    reply: listOf(ApiKey),
  },
  revokeApiKey: {
    summary: 'Revoke an API key',
    method: 'DELETE',
    path: '/v1/api-keys/:key_id',
    repeat: 'gone',
    example: { client: 'sandlot keys rm "$KEY_ID"' },
    credential: 'token',
    bucket: 'changes',
    status: 204,
    params: z.object({ key_id: Id }),
    errors: ['not_found'],
  },
  rotateApiKey: {
    summary: 'Replace an API key with a new one that has the same name, scope and lifetime',
    method: 'POST',
    path: '/v1/api-keys/:key_id/rotate',
    repeat: 'no',
    example: { body: { overlap_seconds: 3600 }, client: 'sandlot keys rotate "$KEY_ID" --overlap 1h' },
    credential: 'token',
    bucket: 'changes',
    status: 201,
    params: z.object({ key_id: Id }),
    body: z
      .strictObject({
        overlap_seconds: z
          .int()
          .min(0)
          .max(limits.overlapSeconds.max)
          .default(limits.overlapSeconds.default)
          .describe('How long the old key remains valid, in seconds. 0 revokes it immediately'),
      })
      .prefault({}),
    reply: NewApiKey,
    errors: ['not_found', 'api_key_limit_reached'],
  },
})
