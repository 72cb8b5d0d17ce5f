/** Images and lifetimes that this installation offers, as JSON Schema. */
import type { Settings } from '../../shared/platform/settings.ts'

/** @param mostSeconds the longest life of a sandbox of the account that asks */
export const offered = ({ images, image, maxSeconds }: Settings['sandbox'], mostSeconds = maxSeconds) => ({
  image: { type: 'string', enum: images, default: image },
  ttl_seconds: { type: 'integer', minimum: 1, maximum: mostSeconds, default: mostSeconds },
})
