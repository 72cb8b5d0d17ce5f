/** JSON Schema of the images and TTLs allowed by this installation. */
import type { Settings } from '../../shared/platform/settings.ts'

/** @param maxTtl the account's maximum TTL, in seconds */
export const offered = ({ images, image, maxSeconds }: Settings['sandbox'], maxTtl = maxSeconds) => ({
  image: { type: 'string', enum: images, default: image },
  ttl_seconds: { type: 'integer', minimum: 1, maximum: maxTtl, default: maxTtl },
})
