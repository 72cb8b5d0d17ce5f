import type * as z from 'zod'

export interface Described {
  zodSchema: z.core.$ZodTypes
  jsonSchema: z.core.JSONSchema.BaseSchema
}

/**
 * Adds the keyword where zod omits it: for a field that is parsed from a string, such as a number in a query.
 */
export function describeDefault({ zodSchema, jsonSchema }: Described): void {
  const { def } = zodSchema._zod
  if (def.type === 'default') jsonSchema.default ??= def.defaultValue as never
}
