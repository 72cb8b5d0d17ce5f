import { useRef } from 'react'

/** Returns the visible part of a list. Scrolls only as far as needed to show the selection. */
export function useWindow<T>(all: T[], rows: number, isSelected: (each: T) => boolean) {
  const topBefore = useRef(0)
  const at = Math.max(0, all.findIndex(isSelected))
  const top = Math.min(Math.max(topBefore.current, at - rows + 1), at)
  topBefore.current = Math.max(0, Math.min(top, all.length - rows))
  return { at, shown: all.slice(topBefore.current, topBefore.current + rows) }
}
