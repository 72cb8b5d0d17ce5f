/** Readers of a command's output that are there. Each gets all of it, so a command may have few. */
import { Problem } from '../../shared/platform/problem.ts'
import type { Command } from './command.ts'

const maxReaders = 8
/** @throws {Problem} `rate_limited` */
export function assertReaderLimit({ log }: Command): void {
  if (log.readerCount < maxReaders) return
  throw new Problem(
    'rate_limited',
    `This command is followed by ${maxReaders} readers. Wait until one of them leaves, or read its output when it has ended.`,
    { retryAfterSeconds: 1 },
  )
}
