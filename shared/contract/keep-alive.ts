/** Whether the other side of a WebSocket is still there. Its pings also keep proxies from closing the connection. */
import type { WebSocket } from 'ws'

/** Bytes that fit into the buffers on the way (a pipe alone takes 64 KiB), and so hold up no answer. */
const harmlessBytes = 32 * 1024
/** Messages that come at shorter intervals than this, in milliseconds, are one stream. */
const pauseMs = 250

/**
 * Pings, and calls `onSilence` when a ping stayed unanswered until the next. So a dead connection is noticed after one
 * to two times `everyMs`. Much that the other side has not read, or a socket that is paused, holds up its answers too;
 * then silence proves nothing. A ping costs some twenty bytes and microseconds.
 *
 * A ping waits for a pause in what comes. The other side may have ended, with its last words on the way: Kubernetes
 * drops those as soon as it cannot hand on what came for a process that ended (`select` in its upgradeaware.go).
 */
export function keepAlive(socket: WebSocket, everyMs: number, onSilence: () => void) {
  let isAwaiting = false
  let isMuchUnread = false
  let written = 0
  let heardAt = performance.now()
  let later: NodeJS.Timeout | undefined
  const look = () => {
    if (socket.readyState !== socket.OPEN) return
    if (isAwaiting && !isMuchUnread && !socket.isPaused) return onSilence()
    clearTimeout(later)
    const streamsMs = heardAt + pauseMs - performance.now()
    if (streamsMs > 0) {
      later = setTimeout(look, streamsMs).unref()
      return
    }
    isAwaiting = true
    socket.ping()
  }
  // After this process stood still, its timers are due before it has read what came meanwhile.
  const timer = setInterval(() => setImmediate(look), everyMs)
  timer.unref()
  socket.on('pong', () => {
    isAwaiting = false
    isMuchUnread = false
  })
  socket.on('message', () => {
    heardAt = performance.now()
    isAwaiting = false
  })
  return {
    /** To be told of all that is written. */
    wrote: (bytes: number) => {
      written += bytes
      if (written > harmlessBytes) isMuchUnread = true
    },
    stop: () => {
      clearInterval(timer)
      clearTimeout(later)
    },
  }
}
