/** A value that is made once for all who need it at the same time, and dropped with the last of them. */
export interface SharedValue<T> {
  value: T
  /** May be called again. */
  release(): void
}

export function makeSharedValues<T>() {
  const entries = new Map<string, { value: Promise<T>; holders: number }>()
  return {
    get size() {
      return entries.size
    },
    /** @param make called for the first; when it fails, nothing is kept */
    async hold(key: string, make: () => Promise<T>): Promise<SharedValue<T>> {
      const entry = entries.get(key) ?? { value: make(), holders: 0 }
      entries.set(key, entry)
      entry.holders++
      let isHeld = true
      const release = () => {
        if (!isHeld) return
        isHeld = false
        entry.holders--
        if (entry.holders === 0) entries.delete(key)
      }
      try {
        return { value: await entry.value, release }
      } catch (error) {
        release()
        throw error
      }
    },
  }
}
