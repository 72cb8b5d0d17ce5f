/**
 * Limits the frame rate of WebSockets. All sockets of an owner (an account or a pod) share a limit on frames
 * instead of bytes, because an empty frame takes as much time to process as a large one.
 */
import { WebSocket } from 'ws'
import type { TokenBuckets } from '../lib/token-buckets.ts'

const pongIntervalMs = 10

/**
 * A WebSocket that pauses while its owner exceeds the frame rate limit. Up to 100 KiB of frames that have
 * already been read are still emitted. Requires `allowSynchronousEvents: false`, which emits one frame per
 * event-loop iteration.
 */
export class RateLimitedWebSocket extends WebSocket {
  private readonly pauseReasons = new Set<'rate' | 'reader'>()

  /**
   * Answers only the latest ping, as RFC 6455 permits, so that a client never has to process thousands of
   * pongs at once. Requires `autoPong: false`.
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
