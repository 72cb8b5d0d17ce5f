/**
 * Returns the first index below `count` for which `holds` returns true, or `count` if there is none. `holds`
 * must also be true for every later index.
 */
export function firstIndex(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
