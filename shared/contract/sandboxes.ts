import * as z from 'zod'
import {
  ById,
  type Endpoint,
  family,
  idempotencyKey,
  listOf,
  Moment,
  Page,
  reading,
  Time,
} from './endpoint.ts'
import { limits } from './limits.ts'
import { characters, Environment, fieldName, Name, Text } from './texts.ts'

const destroyReasons = ['requested', 'expired', 'idle', 'start_failed', 'suspended', 'pod_failed'] as const
export type DestroyReason = (typeof destroyReasons)[number]

const sandboxStates = ['active', 'destroyed'] as const
const listedStates = [...sandboxStates, 'all'] as const
export type ListedState = (typeof listedStates)[number]
const listOrders = ['desc', 'asc'] as const
export type ListOrder = (typeof listOrders)[number]

export const Sandbox = z
  .object({
    id: z.string(),
    state: z.enum(sandboxStates),
    name: z.string().nullable(),
    image: z.string(),
    metadata: z.record(z.string(), z.string()),
    created_at: Time,
    ready_at: Time.nullable().describe('When the sandbox became ready to run commands'),
    expires_at: Time,
    idle_timeout_seconds: z.int().nullable(),
    destroyed_at: Time.nullable(),
    destroy_reason: z.enum(destroyReasons).nullable(),
    destroy_detail: z.string().nullable(),
    billed_seconds: z.number(),
    timings: z
      .record(z.string(), z.union([z.number(), z.string()]))
      .describe(
        '`pod` is `claimed` for a warm pod, `cold` for a new pod, and `replaced` for a new pod that replaced a dead warm pod. All other fields are the milliseconds from admission to each stage of the start',
      ),
  })
  .meta({ id: 'Sandbox' })
export type Sandbox = z.infer<typeof Sandbox>

const metadataEntries = z
  .record(fieldName(characters(Text, 1, 64)), characters(Text, 0, 512))
  .refine((metadata) => Object.keys(metadata).length <= 32, 'must have at most 32 entries')

const Metadata = metadataEntries
  .refine(
    (metadata) => Buffer.byteLength(Object.entries(metadata).flat().join('')) <= limits.metadataBytes,
    `names and values must have at most ${limits.metadataBytes} bytes in total`,
  )
  .meta({ maxProperties: 32, 'x-max-bytes': limits.metadataBytes })

const IdleTimeout = z.int().min(60).max(86_400)

const createErrors = [
  'account_suspended',
  'command_not_allowed',
  // The sandbox of a repeated Idempotency-Key, or of this name, may have been destroyed.
  'sandbox_destroyed',
  'concurrent_sandbox_limit_reached',
  'monthly_usage_limit_reached',
  'sandbox_start_failed',
] as const

const lifecycle = { credential: 'key', scope: 'run', bucket: 'sandbox_lifecycle' } as const

export const sandboxes = family({
  createSandbox: {
    summary: 'Create a sandbox',
    method: 'POST',
    path: '/v1/sandboxes',
    repeat: 'keyed',
    example: {
      body: { name: 'build', ttl_seconds: 600 },
      client: 'sandlot session create --name build --ttl 10m',
    },
    ...lifecycle,
    status: 201,
    headers: z.object({
      'idempotency-key': idempotencyKey(
        'A retry with the same key and body returns the sandbox that the first request created',
      ),
      prefer: z
        .string()
        .optional()
        .describe('`respond-async` returns 202 without waiting until the sandbox is ready'),
    }),
    // Large enough for an environment with JSON escapes.
    bodyBytes: limits.bodyBytes,
    body: z
      .strictObject({
        image: z
          .string()
          .min(1)
          .max(512)
          .optional()
          .describe('The container image. The default is set by the operator'),
        name: Name.optional(),
        metadata: Metadata.optional(),
        env: Environment.optional(),
        ttl_seconds: z
          .int()
          .min(1)
          .optional()
          .describe(
            'Lifetime of the sandbox, in seconds. Default and maximum are `limits.sandbox_seconds` of GET /v1/account',
          ),
        idle_timeout_seconds: IdleTimeout.optional().describe(
          'Idle timeout, in seconds. The sandbox is destroyed after this time without a command, port connection or file operation',
        ),
      })
      .prefault({}),
    reply: Sandbox,
    alsoStatus: 202,
    errors: [...createErrors, 'idempotency_conflict'],
  },
  listSandboxes: {
    summary: 'List sandboxes, newest first by default',
    method: 'GET',
    path: '/v1/sandboxes',
    example: { query: { state: 'active', name: 'build' }, client: 'sandlot session ls --name build' },
    ...reading,
    query: Page.extend({
      state: z.enum(listedStates).default('all'),
      name: Name.optional(),
      image: characters(Text, 1, 512).optional(),
      metadata: metadataEntries
        .meta({
          maxProperties: 32,
          description: 'Entries that the metadata must contain, each as `metadata.NAME=VALUE`',
        })
        .optional(),
      created_after: Moment.optional(),
      order: z
        .enum(listOrders)
        .default('desc')
        .describe('Order by creation time: `desc` for newest first, `asc` for oldest first'),
    }),
    reply: listOf(Sandbox),
  },
  getSandbox: {
    summary: 'Get a sandbox',
    method: 'GET',
    path: '/v1/sandboxes/:id',
    example: { client: 'sandlot session get "$SANDBOX_ID"' },
    ...reading,
    params: ById,
    reply: Sandbox,
    errors: ['not_found'],
  },
  updateSandbox: {
    summary: 'Change the name, the metadata, the lifetime or the idle timeout of a sandbox',
    method: 'PATCH',
    path: '/v1/sandboxes/:id',
    repeat: 'yes',
    example: {
      body: { ttl_seconds: 900, idle_timeout_seconds: 300 },
      client: 'sandlot session update "$SANDBOX_ID" --ttl 15m --idle-timeout 5m',
    },
    credential: 'key',
    scope: 'run',
    bucket: 'changes',
    params: ById,
    body: z.strictObject({
      name: Name.nullable().optional().describe('The new name. `null` removes the name'),
      metadata: Metadata.optional().describe('Replaces all of the metadata'),
      ttl_seconds: z
        .int()
        .min(1)
        .optional()
        .describe(
          'Remaining lifetime, in seconds from now. The lifetime since creation must not exceed `limits.sandbox_seconds` of GET /v1/account',
        ),
      idle_timeout_seconds: IdleTimeout.nullable()
        .optional()
        .describe('The new idle timeout, which counts from now. `null` removes the idle timeout'),
    }),
    reply: Sandbox,
    errors: ['not_found', 'sandbox_destroyed'],
  },
  resetSandbox: {
    summary: 'End all processes in a sandbox. Files are kept',
    method: 'POST',
    path: '/v1/sandboxes/:id/reset',
    example: { client: 'sandlot session reset "$SANDBOX_ID" --yes' },
    repeat: 'yes',
    ...lifecycle,
    params: ById,
    reply: Sandbox,
    errors: ['not_found', 'sandbox_starting', 'sandbox_destroyed', 'sandbox_exhausted', 'account_suspended'],
  },
  destroySandbox: {
    summary: 'Destroy a sandbox. The request has no effect if the sandbox is already destroyed',
    method: 'DELETE',
    path: '/v1/sandboxes/:id',
    repeat: 'yes',
    example: { client: 'sandlot session rm "$SANDBOX_ID" --yes' },
    ...lifecycle,
    params: ById,
    reply: Sandbox,
    errors: ['not_found'],
  },
})

const { createSandbox } = sandboxes

export const sandboxesByName = family({
  getOrCreateSandbox: {
    summary: 'Get the active sandbox with this name, or create it. Image and environment must match',
    method: 'PUT',
    path: '/v1/sandboxes/by-name/:name',
    repeat: 'yes',
    example: {
      params: { name: 'web' },
      body: { ttl_seconds: 600 },
      client: 'sandlot session create --name web --ttl 10m --reuse',
    },
    ...lifecycle,
    status: 201,
    params: z.object({ name: Name }),
    headers: z.object({
      prefer: z
        .string()
        .regex(/^[\t\x20-\x7e]{0,255}$/, 'must be at most 255 printable ASCII characters')
        .optional()
        .describe('`respond-async` returns 202 without waiting until the sandbox is ready'),
    }),
    bodyBytes: createSandbox.bodyBytes,
    body: createSandbox.body.unwrap().omit({ name: true }).prefault({}),
    reply: Sandbox,
    alsoFound: true,
    alsoStatus: 202,
    errors: [...createErrors, 'sandbox_mismatch'],
  },
})

export const createEndpoints: readonly Endpoint[] = [createSandbox, sandboxesByName.getOrCreateSandbox]
