/** Adds a keyword that zod omits from a JSON Schema. */
import type * as z from 'zod'

export interface Described {
  zodSchema: z.core.$ZodTypes
  jsonSchema: z.core.JSONSchema.BaseSchema
}

/** The default of a field that is read from text, such as a number in a query. */
export function describeDefault({ zodSchema, jsonSchema }: Described): void {
  const { def } = zodSchema._zod
  if (def.type === 'default') jsonSchema.default ??= def.defaultValue as never
}
