/** Limits the number of readers per command, because each reader receives its own copy of the output. */
import { Problem } from '../../shared/platform/problem.ts'
import type { Command } from './command.ts'

const maxReaders = 8

/** @throws {Problem} `rate_limited` when the command already has the maximum number of readers */
export function assertReaderLimit({ log }: Command): void {
  if (log.readerCount < maxReaders) return
  throw new Problem(
    'rate_limited',
    `This command already has ${maxReaders} readers. Disconnect one, or read the output after the command ends.`,
    { retryAfterSeconds: 1 },
  )
}
