import { useEffect, useState } from 'react'
import { serviceNow } from '../core/times.ts'

/**
 * The service's time, updated every second. A screen reader reads each change aloud, so it updates every 30
 * s.
 */
export function useNow(isReadAloud: boolean): number {
  const [now, setNow] = useState(serviceNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), isReadAloud ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isReadAloud])
  return isReadAloud ? now : serviceNow()
}
