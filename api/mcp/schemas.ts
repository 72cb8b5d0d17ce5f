/** The tools as `tools/list` shows them: JSON Schema, made from the schemas that validate the routes. */
import * as z from 'zod'
import { type Tool, type ToolName, tools } from '../../shared/contract/mcp.ts'

type Json = Record<string, unknown>

type DescribedTool = ReturnType<typeof describe>

export interface ObjectSchema extends Json {
  type: 'object'
  properties: Record<string, Json>
  required?: string[]
}

let made: DescribedTool[] | undefined

/** Made at the first call. */
export function describedTools(): DescribedTool[] {
  made ??= Object.entries(tools).map(([name, tool]) => describe(name as ToolName, tool))
  return made
}

/** The tool's input that becomes `:id` in the route's path. */
export const sessionInput = 'session_id'

function describe(name: ToolName, tool: Tool) {
  const { title, description, readOnly, destructive, idempotent, openWorld } = tool
  return {
    name,
    title,
    description,
    inputSchema: inputOf(tool),
    outputSchema: toObjectSchema(tool.endpoint.reply!, 'output'),
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      openWorldHint: openWorld,
    },
  }
}

function inputOf({ endpoint, without = [], required: always = [] }: Tool): ObjectSchema {
  const { query, body, params } = endpoint
  const given = query ?? body
  const { properties, required = [] } = given
    ? toObjectSchema(given, 'input')
    : { properties: {}, required: [] }
  const kept = Object.entries(properties).filter(([name]) => !without.includes(name))
  const session = { type: 'string', description: 'The id that session_create gave' }
  return {
    type: 'object',
    properties: { ...(params ? { [sessionInput]: session } : {}), ...Object.fromEntries(kept) },
    required: [...new Set([...(params ? [sessionInput] : []), ...required, ...always])],
    additionalProperties: false,
  }
}

/** JSON Schema of the draft that all clients read, without references: some clients do not follow them. */
function toObjectSchema(schema: z.ZodType, io: 'input' | 'output'): ObjectSchema {
  const {
    $schema,
    definitions,
    id,
    default: _,
    ...described
  } = z.toJSONSchema(schema, {
    io,
    target: 'draft-7',
    override: ({ jsonSchema }) => plainer(jsonSchema, io),
  }) as Json
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

/** Leaves out what tells a model nothing, and lets a reply have new fields. */
function plainer(described: Json, io: 'input' | 'output'): void {
  if (io === 'output') delete described.additionalProperties
  if (described.format === 'date-time') delete described.pattern
  if (described.maximum === Number.MAX_SAFE_INTEGER) delete described.maximum
  if (described.minimum === Number.MIN_SAFE_INTEGER) delete described.minimum
  if (isSwitch(described)) {
    delete described.enum
    described.type = 'boolean'
  }
}

/** Whether it is a query parameter of `true` or `false`; an agent sends a boolean. */
const isSwitch = ({ enum: values }: Json): boolean => Array.isArray(values) && values.join() === 'true,false'
