import type * as z from 'zod'

export interface Described {
  zodSchema: z.core.$ZodTypes
  jsonSchema: z.core.JSONSchema.BaseSchema
}

/**
 * Adds the `default` keyword to fields parsed from strings, such as numbers in a query. Zod omits it for
 * these fields.
 */
export function describeDefault({ zodSchema, jsonSchema }: Described): void {
  const { def } = zodSchema._zod
  if (def.type === 'default') jsonSchema.default ??= def.defaultValue as never
}
