/** Readers of a command's output that are there. Each gets all of it, so a command and an account may have few. */
import type { Context } from '../../shared/platform/context.ts'
import type { Holding } from '../../shared/platform/ledger.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Command } from './command.ts'

/** Of one command at a time. */
const mostReaders = 8
/** Bytes of output on the way to one reader. */
const readerBytes = 64 * 1024

/** Counts a reader for its account. @throws {Problem} `rate_limited` when the account has too many */
export function openFollower({ ledger }: Pick<Context, 'ledger'>, accountId: string): Holding {
  const follower = ledger.open(accountId, 'followers')
  try {
    follower.add(readerBytes)
    return follower
  } catch (error) {
    follower.free()
    throw error
  }
}

/** @throws {Problem} `rate_limited` */
export function mustHaveRoom({ log }: Command): void {
  if (log.readerCount < mostReaders) return
  throw new Problem(
    'rate_limited',
    `This command is followed by ${mostReaders} readers. Wait until one of them leaves, or read its output when it has ended.`,
    { retryAfterSeconds: 1 },
  )
}
