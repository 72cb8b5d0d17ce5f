/** A value that is made once for all who need it at the same time, and dropped with the last of them. */
import { once } from 'node:events'

export interface SharedValue<T> {
  value: T
  /** May be called again. */
  release(): void
}

export interface SharedValuesOptions {
  /** How many values of one group there are at most; whoever needs one more waits. */
  mostOfGroup: number
  /** Milliseconds of that. */
  waitMs: number
  /** Throws what is told after that. */
  late(): never
}

export function makeSharedValues<T>({ mostOfGroup, waitMs, late }: SharedValuesOptions) {
  const entries = new Map<string, { group: string; value: Promise<T>; holders: number }>()
  const ofGroup = (group: string) => [...entries.values()].filter((entry) => entry.group === group).length
  const drops = new EventTarget()

  /** Resolves when the group has room for a value, or has this one. */
  async function awaitRoom(group: string, key: string): Promise<void> {
    const signal = AbortSignal.timeout(waitMs)
    while (!entries.has(key) && ofGroup(group) >= mostOfGroup) {
      await once(drops as never, group, { signal }).catch(late)
    }
  }

  return {
    get size() {
      return entries.size
    },
    /** @param make called for the first; when it fails, nothing is kept */
    async hold(group: string, key: string, make: () => Promise<T>): Promise<SharedValue<T>> {
      await awaitRoom(group, key)
      const entry = entries.get(key) ?? { group, value: make(), holders: 0 }
      entries.set(key, entry)
      entry.holders++
      let isHeld = true
      const release = () => {
        if (!isHeld) return
        isHeld = false
        entry.holders--
        if (entry.holders > 0) return
        entries.delete(key)
        drops.dispatchEvent(new Event(group))
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
