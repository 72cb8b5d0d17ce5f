/** The settings of the warm pools. */
import * as z from 'zod'

/** The number of warm pods of an image. It follows demand between the two. */
export interface PoolSize {
  min: number
  max: number
}

const maxSize = 1_000

/** `image=4` or `image=2..10`. The name of an image contains no `=`. */
export const poolEntry = z.string().transform((text, context) => {
  const [, image, min, max] = /^([^=\s]+)=(\d{1,4})(?:\.\.(\d{1,4}))?$/.exec(text) ?? []
  const size = { min: Number(min), max: Number(max ?? min) }
  if (image && size.min <= size.max && size.max <= maxSize) return { image, ...size }
  context.addIssue(`expected image=n or image=min..max with numbers up to ${maxSize}, comma-separated`)
  return z.NEVER
})

export interface PoolSettings {
  WARM_POOL_SIZE: number
  WARM_POOLS: z.output<typeof poolEntry>[]
}

/** Pool sizes by image. `WARM_POOL_SIZE` is for the default image. */
export function readPools({ WARM_POOL_SIZE: size, WARM_POOLS }: PoolSettings, defaultImage: string) {
  const pools = new Map<string, PoolSize>()
  if (size > 0) pools.set(defaultImage, { min: size, max: size })
  for (const { image, min, max } of WARM_POOLS) if (max > 0) pools.set(image, { min, max })
  return pools
}

/** Returns a contradiction between the settings, or undefined. */
export function poolsProblem(
  { WARM_POOL_SIZE, WARM_POOLS }: PoolSettings,
  { image, images }: { image: string; images: readonly string[] },
): string | undefined {
  const named = WARM_POOLS.map((pool) => pool.image)
  if (named.some((each) => !images.includes(each))) {
    return 'WARM_POOLS: names an image that SANDBOX_IMAGES does not offer'
  }
  if (new Set(named).size < named.length) return 'WARM_POOLS: names an image twice'
  if (WARM_POOL_SIZE > 0 && named.includes(image)) {
    return 'WARM_POOLS: names the image of SANDBOX_IMAGE, whose pool WARM_POOL_SIZE sets. Remove one of them'
  }
  return undefined
}
