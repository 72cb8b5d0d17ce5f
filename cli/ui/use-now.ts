import { useEffect, useState } from 'react'

/** The time, by our clock, anew every second; for ears, which hear each change, every half minute. */
export function useNow(isForEars: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), isForEars ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isForEars])
  // What came in between is from now too.
  return Math.max(now, isForEars ? 0 : Date.now())
}
