import { useEffect, useState } from 'react'

/** The time by our clock, updated every second; every half minute for screen readers, which read each change. */
export function useNow(isForEars: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), isForEars ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isForEars])
  // A frame between two ticks gets the present time.
  return Math.max(now, isForEars ? 0 : Date.now())
}
