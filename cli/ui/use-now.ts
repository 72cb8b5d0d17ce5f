import { useEffect, useState } from 'react'
import { serviceNow } from '../core/times.ts'

/**
 * Returns the service's time. Updates it every second, or every 30 s with a screen reader, which reads each change
 * aloud.
 */
export function useNow(isReadAloud: boolean): number {
  const [now, setNow] = useState(serviceNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), isReadAloud ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isReadAloud])
  return isReadAloud ? now : serviceNow()
}
