const given = process.env.SANDLOT_SEED

/** Whether somebody chose or printed the seed: `npm run soak` always does, `npm test` with `--times` or `--seed`. */
export const isSeeded = given !== undefined
/** What is random in a test follows from this number, so that the same can be met again. */
export const seed = Number(given ?? Date.now() % 2 ** 31)
