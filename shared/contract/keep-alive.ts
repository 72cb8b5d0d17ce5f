/** Pings detect dead WebSocket connections, and prevent proxies from closing idle ones. */
import type { WebSocket } from 'ws'

/**
 * Number of bytes that can be written after a pong without delaying the next one. Even if the remote process
 * reads none of them, they fit into the connection's buffers, because a pipe alone holds 64 KiB.
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
  let writtenSincePong = 0
  let receivedAt = performance.now()
  let later: NodeJS.Timeout | undefined
  const check = () => {
    if (socket.readyState !== socket.OPEN) return
    if (isAwaiting && writtenSincePong <= harmlessBytes && !socket.isPaused) return onTimeout()
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
    writtenSincePong = 0
  })
  socket.on('message', () => {
    receivedAt = performance.now()
    isAwaiting = false
  })
  return {
    /** Must be called with the size of each write, in bytes. */
    wrote: (bytes: number) => {
      writtenSincePong += bytes
    },
    stop: () => {
      clearInterval(timer)
      clearTimeout(later)
    },
  }
}
