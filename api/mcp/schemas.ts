/**
 * Describes the tools for models. Output schemas are omitted, because every character costs the model tokens.
 */
import * as z from 'zod'
import { type Tool, type ToolName, tools } from '../../shared/contract/mcp.ts'
import { withoutNul } from '../../shared/contract/texts.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import { type Described, describeDefault, offered } from '../http/json-schema.ts'

type Json = Record<string, unknown>

type DescribedTool = ReturnType<typeof describe>

interface ObjectSchema extends Json {
  type: 'object'
  properties: Record<string, Json>
  required?: string[]
}

let made: DescribedTool[] | undefined

export function describedTools(): DescribedTool[] {
  made ??= Object.entries(tools).map(([name, tool]) => describe(name as ToolName, tool))
  return made
}

/**
 * Returns the tools as described to one account.
 * @param maxTtl the account's maximum TTL, in seconds
 */
export function toolsFor(
  { sandbox, driver }: Pick<Settings, 'sandbox' | 'driver'>,
  maxTtl: number = sandbox.maxSeconds,
): DescribedTool[] {
  const hasNetwork = driver === 'kubernetes' && sandbox.egress === 'internet'
  const network = hasNetwork
    ? 'The sandbox can reach the internet, but no private networks.'
    : 'The sandbox has no network access.'
  const facts = offered(sandbox, maxTtl)
  return describedTools().map((tool) => {
    const { name, description, annotations, inputSchema } = tool
    if (name === 'exec') {
      return { ...tool, annotations: { ...annotations, openWorldHint: hasNetwork } }
    }
    if (name !== 'session_create') return tool
    const properties = { ...inputSchema.properties, ...facts }
    return { ...tool, description: `${description} ${network}`, inputSchema: { ...inputSchema, properties } }
  })
}

/** Name of the tool input for the sandbox ID, which is the path parameter `:id` of the route. */
export const sessionInput = 'session_id'

function describe(name: ToolName, tool: Tool) {
  const { title, description, readOnly, destructive, idempotent, openWorld } = tool
  return {
    name,
    title,
    description,
    inputSchema: inputOf(tool),
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      openWorldHint: openWorld,
    },
  }
}

function inputOf({ endpoint, without = [], required: always = [], inputs = {}, defaults = {} }: Tool) {
  const { query, body, params } = endpoint
  const given = query ?? body
  const { properties, required = [] } = given ? toObjectSchema(given) : { properties: {}, required: [] }
  const kept = Object.entries(properties)
    .filter(([name]) => !without.includes(name))
    .map(([name, schema]) => {
      const description = inputs[name] === undefined ? {} : { description: inputs[name] }
      return [name, { ...schema, ...description, ...(name in defaults ? { default: defaults[name] } : {}) }]
    })
  const session = { type: 'string', description: 'The id from session_create' }
  return {
    type: 'object',
    properties: { ...(params ? { [sessionInput]: session } : {}), ...Object.fromEntries(kept) },
    required: [...new Set([...(params ? [sessionInput] : []), ...required, ...always])],
    additionalProperties: false,
  } satisfies ObjectSchema
}

/** Converts a zod schema to JSON Schema draft 7, which all MCP clients support, and inlines references. */
function toObjectSchema(schema: z.ZodType): ObjectSchema {
  const options = { io: 'input', target: 'draft-7', override: plainer } as const
  const { $schema, definitions, id, default: _, ...described } = z.toJSONSchema(schema, options) as Json
  return inline(described, (definitions ?? {}) as Record<string, Json>) as ObjectSchema
}

function inline(value: unknown, definitions: Record<string, Json>): unknown {
  if (Array.isArray(value)) return value.map((one) => inline(one, definitions))
  if (typeof value !== 'object' || value === null) return value
  const { $ref, ...rest } = value as Json
  if (typeof $ref === 'string') {
    const { id, ...target } = definitions[$ref.slice($ref.lastIndexOf('/') + 1)]!
    return inline({ ...target, ...rest }, definitions)
  }
  return Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, inline(inner, definitions)]))
}

function plainer({ zodSchema, jsonSchema }: Described): void {
  describeDefault({ zodSchema, jsonSchema })
  const described: Json = jsonSchema
  delete described['x-max-bytes']
  // The pattern is long, and the error message explains the rule.
  if (described.pattern === withoutNul) delete described.pattern
  for (const rule of ['allOf', 'oneOf', 'not', 'if', 'then', 'propertyNames']) delete described[rule]
  if (described.maximum === Number.MAX_SAFE_INTEGER) delete described.maximum
  if (described.minimum === Number.MIN_SAFE_INTEGER) delete described.minimum
  if (isSwitch(described)) {
    delete described.enum
    described.type = 'boolean'
  }
}

/** Whether a parameter accepts only the strings `true` and `false`. Tools declare it as a boolean instead. */
const isSwitch = ({ enum: values }: Json): boolean => Array.isArray(values) && values.join() === 'true,false'
