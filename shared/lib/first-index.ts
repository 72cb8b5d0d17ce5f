/**
 * Returns the first index for which `holds` is true, or `count` if there is none. If `holds` is true for an
 * index, it must also be true for every later one.
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
