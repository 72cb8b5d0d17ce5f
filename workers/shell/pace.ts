/**
 * How fast a worker reads what commands print: each account has so much a second. Reading waits when that is
 * used up, so the command waits too, and a chatty one leaves the processor to others. An account that is alone
 * here has more; accounts that print much at the same time share what one of them would have, and all of them have
 * less while the event loop is busy: how much a machine can is known only when it is asked for too much.
 */
import { performance } from 'node:perf_hooks'

/** Bytes a second: what one account may have when others run commands here too, and when none does. */
const rates = { beside: 64 * 1024 * 1024, alone: 128 * 1024 * 1024 }
/** However many share, and however busy it is. */
const leastRate = 1024 * 1024
/** The part of its time that the event loop may be busy beside others: the rest is for what they ask for. */
const mostBusy = 0.5
const busyEveryMs = 100
/** What a busy round takes of the rates, what an idle one gives back, and what is left of them at least. */
const brake = { down: 0.7, up: 1.1, least: 1 / 32 }
/** What may come at once after a pause, so that only those who go on printing ever wait. */
const burstBytes = 4 * 1024 * 1024
/** Each piece costs as much as so many bytes, however small it is. */
const pieceBytes = 16 * 1024
/** A byte that somebody follows is read, encoded, sent and passed on by the API. */
const followedFactor = 4
/** An account that did nothing for so long is not here any more. */
const presentMs = 10_000

interface Purse {
  /** Bytes that it may have at `at`; below zero it is in debt, and waits. */
  left: number
  at: number
  /** When it last ran a command or printed something. */
  seenAt: number
}

export interface Pace {
  /** The account runs a command here. */
  see(accountId: string): void
  /** Output was taken. @returns how many milliseconds to wait before more of it is read; 0 mostly */
  spend(accountId: string, bytes: number, isFollowed: boolean): number
}

/**
 * @param now milliseconds that only ever grow
 * @param busyPart of the time since it was last asked, that the event loop was busy: 0 to 1
 */
export function makePace(now: () => number = () => performance.now(), busyPart = watchLoop()): Pace {
  const purses = new Map<string, Purse>()
  let part = 1
  let askedAt = now()

  const feelBusy = (at: number) => {
    if (at - askedAt < busyEveryMs) return
    askedAt = at
    part = busyPart() > mostBusy ? Math.max(brake.least, part * brake.down) : Math.min(1, part * brake.up)
  }

  const purseOf = (accountId: string): Purse => {
    const at = now()
    const known = purses.get(accountId) ?? { left: burstBytes, at, seenAt: at }
    // The last in the map was seen last, so that those who left stand first.
    purses.delete(accountId)
    purses.set(accountId, known)
    known.seenAt = at
    for (const [id, { seenAt }] of purses) {
      if (at - seenAt < presentMs) break
      purses.delete(id)
    }
    return known
  }
  const rate = (): number => {
    if (purses.size === 1) return rates.alone
    let inDebt = 0
    for (const { left } of purses.values()) if (left < 0) inDebt++
    return Math.max(leastRate, (part * rates.beside) / Math.max(1, inDebt))
  }
  return {
    see(accountId) {
      purseOf(accountId)
    },
    spend(accountId, bytes, isFollowed) {
      const purse = purseOf(accountId)
      const at = now()
      feelBusy(at)
      const perMs = rate() / 1000
      purse.left = Math.min(burstBytes, purse.left + (at - purse.at) * perMs)
      purse.at = at
      purse.left -= pieceBytes + bytes * (isFollowed ? followedFactor : 1)
      return purse.left < 0 ? Math.ceil(-purse.left / perMs) : 0
    },
  }
}

function watchLoop(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const { utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    return utilization
  }
}
