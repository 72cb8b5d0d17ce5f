/**
 * WebSockets with a frame rate limit per owner, which is an account or a pod, across all of its sockets. Limits on
 * bytes do not cover this, because an empty frame takes as much time as a large one.
 */
import { WebSocket } from 'ws'
import type { TokenBuckets } from '../lib/token-buckets.ts'

const pongIntervalMs = 10

/**
 * A WebSocket that is paused while its owner is above the limit. Frames of the last read, up to 100 KiB, are still
 * emitted and counted. Use it with `allowSynchronousEvents: false`, which emits one frame per event-loop iteration.
 */
export class RateLimitedWebSocket extends WebSocket {
  private readonly pauseReasons = new Set<'rate' | 'reader'>()

  /**
   * Answers only the latest ping every 10 ms, which RFC 6455 permits. Each pong is a TLS record, and a receiver of
   * thousands would process all of them in one event-loop iteration. Use it with `autoPong: false`.
   */
  answerPings(): void {
    let latest: Buffer | undefined
    let timer: NodeJS.Timeout | undefined
    const answer = () => {
      timer = undefined
      if (!latest) return
      if (this.readyState === WebSocket.OPEN) this.pong(latest)
      latest = undefined
      timer = setTimeout(answer, pongIntervalMs).unref()
    }
    this.on('ping', (data) => {
      latest = data
      if (!timer) answer()
    })
  }

  /** Counts messages, pings and pongs from now on. */
  limitFrames(limit: TokenBuckets, owner: string): void {
    let timer: NodeJS.Timeout | undefined
    const waitFor = (ms: number) => {
      this.pauseFor('rate')
      timer = setTimeout(() => {
        timer = undefined
        // Other sockets of the owner may have spent more in the meantime.
        const moreMs = limit.spend(owner, 0)
        if (moreMs > 0) waitFor(moreMs)
        else this.resumeFrom('rate')
      }, ms).unref()
    }
    const count = () => {
      const ms = limit.spend(owner, 1)
      if (ms > 0 && !timer) waitFor(ms)
    }
    this.on('message', count).on('ping', count).on('pong', count)
    this.on('close', () => clearTimeout(timer))
  }

  private pauseFor(reason: 'rate' | 'reader'): void {
    this.pauseReasons.add(reason)
    super.pause()
  }

  /** The socket remains paused until no reason is left. */
  private resumeFrom(reason: 'rate' | 'reader'): void {
    this.pauseReasons.delete(reason)
    if (this.pauseReasons.size === 0) super.resume()
  }

  override pause(): void {
    this.pauseFor('reader')
  }

  override resume(): void {
    this.resumeFrom('reader')
  }
}
