import * as z from 'zod'

export interface PoolSize {
  min: number
  max: number
}

const maxSize = 1_000

/** Parses `image=4` or `image=2..10`. An image name cannot contain `=`. */
export const poolEntry = z.string().transform((text, context) => {
  const [, image, min, max] = /^([^=\s]+)=(\d{1,4})(?:\.\.(\d{1,4}))?$/.exec(text) ?? []
  const size = { min: Number(min), max: Number(max ?? min) }
  if (image && size.min <= size.max && size.max <= maxSize) return { image, ...size }
  context.addIssue(`expected image=n or image=min..max with numbers up to ${maxSize}, comma-separated`)
  return z.NEVER
})

interface PoolSettings {
  WARM_POOL_SIZE: number
  WARM_POOLS: z.output<typeof poolEntry>[]
}

/** Returns the warm pools by image. `WARM_POOL_SIZE` applies to the default image. */
export function readPools({ WARM_POOL_SIZE: size, WARM_POOLS }: PoolSettings, defaultImage: string) {
  const pools = new Map<string, PoolSize>()
  if (size > 0) pools.set(defaultImage, { min: size, max: size })
  for (const { image, min, max } of WARM_POOLS) if (max > 0) pools.set(image, { min, max })
  return pools
}

/** Returns an error message if the pool settings contradict each other or SANDBOX_IMAGES. */
export function poolsProblem(
  { WARM_POOL_SIZE, WARM_POOLS }: PoolSettings,
  { image, images }: { image: string; images: readonly string[] },
): string | undefined {
  const named = WARM_POOLS.map((pool) => pool.image)
  if (named.some((each) => !images.includes(each))) {
    return 'WARM_POOLS: contains an image that is not in SANDBOX_IMAGES'
  }
  if (new Set(named).size < named.length) return 'WARM_POOLS: contains an image twice'
  if (WARM_POOL_SIZE > 0 && named.includes(image)) {
    return 'WARM_POOLS: contains SANDBOX_IMAGE, whose pool size is also set by WARM_POOL_SIZE. Remove one of the two'
  }
  return undefined
}
