import * as z from 'zod'
import { changing, family, Id, listOf, Page, reading, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { bytes, Text, VariableName } from './texts.ts'

const SecretName = VariableName.max(255)

const Secret = z
  .object({
    id: z.string(),
    name: z.string(),
    sandbox_id: z
      .string()
      .nullable()
      .describe('The sandbox that the secret belongs to; null if it applies to all sandboxes'),
    created_at: Time.describe('When the current value was set'),
  })
  .meta({ id: 'Secret', description: 'A secret without its value, which is never returned' })
export type Secret = z.infer<typeof Secret>

export const secrets = family({
  createSecret: {
    summary: 'Set a secret. Commands that start afterwards receive it as an environment variable',
    method: 'POST',
    path: '/v1/secrets',
    repeat: 'yes',
    example: { body: { name: 'API_TOKEN', value: 'a secret' }, client: 'sandlot secrets create API_TOKEN' },
    ...changing,
    status: 201,
    // Large enough for a value in which JSON escapes every byte as six bytes.
    bodyBytes: 256 * 1024,
    body: z.strictObject({
      name: SecretName,
      value: bytes(Text, 1, limits.secretBytes).describe('The new value, which replaces the previous value'),
      sandbox_id: Id.optional().describe(
        "The only sandbox that receives the secret. In this sandbox, it overrides the account's secret of the same name",
      ),
    }),
    reply: Secret,
    errors: ['not_found', 'sandbox_destroyed', 'command_not_allowed'],
  },
  listSecrets: {
    summary: 'List the secrets of the account and of its sandboxes, newest first',
    method: 'GET',
    path: '/v1/secrets',
    example: { client: 'sandlot secrets ls' },
    ...reading,
    query: Page.extend({
      sandbox_id: Id.optional().describe('Return only the secrets of this sandbox'),
    }),
    reply: listOf(Secret),
    errors: ['not_found'],
  },
  deleteSecret: {
    summary: 'Delete a secret of the account or of one sandbox. Running commands keep the value',
    method: 'DELETE',
    path: '/v1/secrets/:name',
    repeat: 'gone',
    example: { params: { name: 'API_TOKEN' }, client: 'sandlot secrets rm API_TOKEN' },
    ...changing,
    status: 204,
    params: z.object({ name: SecretName }),
    query: z.strictObject({ sandbox_id: Id.optional() }),
    errors: ['not_found'],
  },
})
