/** Detects dead WebSocket connections. The pings also keep proxies from closing idle connections. */
import type { WebSocket } from 'ws'

/** Bytes that fit into the buffers of the connection (one pipe takes 64 KiB) and therefore do not delay a pong. */
const harmlessBytes = 32 * 1024
/** Milliseconds without a message that count as a pause. */
const pauseMs = 250

/**
 * Sends pings, and calls `onTimeout` if one is unanswered when the next is due: one to two times `everyMs` after the
 * connection died. A missing pong is ignored while the socket is paused or much data was sent, which also delays pongs.
 *
 * A ping waits for a pause in the incoming messages. If the remote process has ended, Kubernetes cannot forward the
 * ping and drops the output that is still in transit (`select` in its upgradeaware.go).
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
    /** Must be called with the size of each write. */
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
