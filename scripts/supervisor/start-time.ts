/** How long a start took, from what the user typed on. */

/** An installation that is there already takes some milliseconds to look at. */
const shownMs = 1_000

/**
 * @param told when `npm start` began, in milliseconds since 1970, and how long it installed; undefined for a stack that
 *   was started by itself
 * @returns words about the time from then until the call
 */
export function measureStart(told: string | undefined): () => string {
  const [began = Date.now(), installedMs = 0] = (told?.split(' ') ?? []).map(Number)
  return () => {
    const seconds = ((Date.now() - began) / 1000).toFixed(1)
    return installedMs < shownMs
      ? `${seconds} s`
      : `${seconds} s, of which ${Math.round(installedMs / 1000)} s installing`
  }
}
