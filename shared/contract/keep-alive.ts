/** Pings detect dead WebSocket connections, and prevent proxies from closing idle ones. */
import type { WebSocket } from 'ws'

/**
 * Total number of bytes that can be written without delaying a pong. Even if the remote process reads none,
 * they fit into the buffers of the connection, because a pipe alone holds 64 KiB.
 */
const harmlessBytes = 32 * 1024
const pauseMs = 250

/**
 * Sends a ping every `everyMs` milliseconds, and calls `onTimeout` if the previous ping is unanswered. A
 * missing pong is ignored while the socket is paused or if written data may have delayed the pong.
 *
 * If the remote process has exited, Kubernetes fails to forward a ping, closes the connection and drops
 * output in transit (`select` in upgradeaware.go). Pings are therefore sent only while no messages arrive.
 */
export function keepAlive(socket: WebSocket, everyMs: number, onTimeout: () => void) {
  let isAwaiting = false
  let mayDelayPong = false
  let written = 0
  let receivedAt = performance.now()
  let later: NodeJS.Timeout | undefined
  const check = () => {
    if (socket.readyState !== socket.OPEN) return
    if (isAwaiting && !mayDelayPong && !socket.isPaused) return onTimeout()
    clearTimeout(later)
    const pauseLeftMs = receivedAt + pauseMs - performance.now()
    if (pauseLeftMs > 0) {
      later = setTimeout(check, pauseLeftMs).unref()
      return
    }
    isAwaiting = true
    socket.ping()
  }
  // After an event-loop stall, timers run before the data that has arrived is read.
  const timer = setInterval(() => setImmediate(check), everyMs)
  timer.unref()
  socket.on('pong', () => {
    isAwaiting = false
    mayDelayPong = false
  })
  socket.on('message', () => {
    receivedAt = performance.now()
    isAwaiting = false
  })
  return {
    /** Must be called with the size of each write, in bytes. */
    wrote: (bytes: number) => {
      written += bytes
      if (written > harmlessBytes) mayDelayPong = true
    },
    stop: () => {
      clearInterval(timer)
      clearTimeout(later)
    },
  }
}
