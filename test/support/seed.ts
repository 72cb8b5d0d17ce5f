const given = process.env.SANDLOT_SEED

/** True in `npm run soak`, and in `npm test` with `--times` or `--seed`. */
export const isSeeded = given !== undefined
/** Determines all random choices, so that failures can be repeated. */
export const seed = Number(given ?? Date.now() % 2 ** 31)
