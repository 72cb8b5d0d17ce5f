/**
 * Limits WebSocket frames per second and owner, an account or a pod, over all of its sockets. Limits on bytes do
 * not cover them: an empty frame costs as much time as a large one.
 */
import { WebSocket } from 'ws'

interface Bucket {
  /** Below zero the owner is in debt, and its sockets are paused. */
  left: number
  at: number
}

export interface FrameRate {
  perSecond: number
  /** Frames that may arrive immediately after a pause. */
  burst: number
}

const pongIntervalMs = 10

/** A token bucket per owner. */
export class FrameRateLimit {
  private readonly rate: FrameRate
  private readonly now: () => number
  private readonly buckets = new Map<string, Bucket>()

  /** @param now milliseconds of a monotonic clock */
  constructor(rate: FrameRate, now: () => number = () => performance.now()) {
    this.rate = rate
    this.now = now
  }

  /** Takes tokens, also beyond the last one. Returns the milliseconds until the owner has paid them back, or 0. */
  spend(owner: string, frames: number): number {
    const bucket = this.buckets.get(owner) ?? this.add(owner)
    this.refill(bucket)
    bucket.left -= frames
    return bucket.left < 0 ? Math.ceil((-bucket.left * 1000) / this.rate.perSecond) : 0
  }

  private add(owner: string): Bucket {
    for (const [other, bucket] of this.buckets) {
      this.refill(bucket)
      if (bucket.left === this.rate.burst) this.buckets.delete(other)
    }
    const bucket = { left: this.rate.burst, at: this.now() }
    this.buckets.set(owner, bucket)
    return bucket
  }

  private refill(bucket: Bucket): void {
    const at = this.now()
    const earned = ((at - bucket.at) * this.rate.perSecond) / 1000
    bucket.left = Math.min(this.rate.burst, bucket.left + earned)
    bucket.at = at
  }
}

/**
 * A WebSocket that is also paused while its owner is over the limit. Frames of the last read still arrive then, up to
 * 100 KiB; they are counted too. Use it with `allowSynchronousEvents: false`, which emits one frame per turn of the loop.
 */
export class RateLimitedWebSocket extends WebSocket {
  private readonly pauseReasons = new Set<'rate' | 'reader'>()

  /**
   * Answers pings, at most every 10 ms and then only the latest, which RFC 6455 permits. Each pong is a TLS record, and
   * the receiver of thousands would have to handle them in one turn. Use it with `autoPong: false`.
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
  limitFrames(limit: FrameRateLimit, owner: string): void {
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

  /** The socket stays paused until every reason is gone. */
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
