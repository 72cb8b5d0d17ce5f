import { useEffect, useState } from 'react'
import { serviceNow } from '../core/times.ts'

/**
 * Returns the service's time, updated every second. A screen reader reads each change aloud, so for screen
 * readers the time is updated every 30 s.
 */
export function useNow(isReadAloud: boolean): number {
  const [now, setNow] = useState(serviceNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), isReadAloud ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isReadAloud])
  return isReadAloud ? now : serviceNow()
}
