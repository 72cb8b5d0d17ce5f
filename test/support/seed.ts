const given = process.env.SANDLOT_SEED

/** Whether the seed was given: always by `npm run soak`, and by `npm test` with `--times` or `--seed`. */
export const isSeeded = given !== undefined
/** Determines all random choices of a test, so that a failure can be repeated. */
export const seed = Number(given ?? Date.now() % 2 ** 31)
