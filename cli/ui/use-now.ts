import { useEffect, useState } from 'react'
import { serviceNow } from '../core/times.ts'

/** The service's time, updated every second; every 30 s for screen readers, which read each change aloud. */
export function useNow(isReadAloud: boolean): number {
  const [now, setNow] = useState(serviceNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), isReadAloud ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isReadAloud])
  return isReadAloud ? now : serviceNow()
}
