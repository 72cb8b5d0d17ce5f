import type * as z from 'zod'
import type { Settings } from '../../shared/platform/settings.ts'

export interface Described {
  zodSchema: z.core.$ZodTypes
  jsonSchema: z.core.JSONSchema.BaseSchema
}

/** Adds the `default` keyword, which Zod omits for fields parsed from strings, such as numbers in a query. */
export function describeDefault({ zodSchema, jsonSchema }: Described): void {
  const { def } = zodSchema._zod
  if (def.type === 'default') jsonSchema.default ??= def.defaultValue as never
}

/**
 * Returns JSON schemas for the images and TTLs that this installation allows.
 * @param maxTtl the account's maximum TTL, in seconds
 */
export const offered = ({ images, image, maxSeconds }: Settings['sandbox'], maxTtl = maxSeconds) => ({
  image: { type: 'string', enum: images, default: image },
  ttl_seconds: { type: 'integer', minimum: 1, maximum: maxTtl, default: maxTtl },
})
