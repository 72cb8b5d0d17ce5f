/**
 * How fast a worker reads what commands print: each account has so many bytes a second. When they are used up, reading
 * waits, so the command waits too, and one that prints much leaves the processor to others. An account that is alone
 * here has more. Accounts that print much at the same time share what one of them would have. All have less while the
 * event loop is busy: how much a machine can do shows only under load.
 */
import { performance } from 'node:perf_hooks'

/** Bytes a second that one account may have, when others run commands here too and when none does. */
const rates = { beside: 64 * 1024 * 1024, alone: 128 * 1024 * 1024 }
/** Bytes a second that each account has at least. */
const leastRate = 1024 * 1024
/** The share of its time that the event loop may spend; the rest is for other requests. */
const mostBusy = 0.5
const busyEveryMs = 100
/** What a busy round multiplies the rates by, what an idle one does, and the smallest factor. */
const brake = { down: 0.7, up: 1.1, least: 1 / 32 }
/** Bytes that may come at once after a pause, so that only steady printing waits. */
const burstBytes = 4 * 1024 * 1024
/** Each chunk counts as at least this many bytes. */
const pieceBytes = 16 * 1024
/** A byte counts as so many more for each reader: it is encoded, sent, and passed on by the API. */
const perReader = 3
/** An account that did nothing for so many milliseconds does not count as present. */
const presentMs = 10_000

interface Purse {
  /** Bytes left at `at`. Below zero the account is in debt, and waits. */
  left: number
  at: number
  /** When it last ran a command or printed something. */
  seenAt: number
}

export interface Pace {
  /** The account runs a command here. */
  see(accountId: string): void
  /** Output was taken. @returns milliseconds to wait before more is read; mostly 0 */
  spend(accountId: string, bytes: number, readers: number): number
}

/**
 * @param now milliseconds of a monotonic clock
 * @param busyPart the share of the time since it was last asked that the event loop was busy: 0 to 1
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
    // The map is in the order of last use, so the accounts that left stand first.
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
    spend(accountId, bytes, readers) {
      const purse = purseOf(accountId)
      const at = now()
      feelBusy(at)
      const perMs = rate() / 1000
      purse.left = Math.min(burstBytes, purse.left + (at - purse.at) * perMs)
      purse.at = at
      purse.left -= pieceBytes + bytes * (1 + perReader * readers)
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
