/** Limits the attached readers of a command, because each receives a copy of the output. */
import { Problem } from '../../shared/platform/problem.ts'
import type { Command } from './command.ts'

const maxReaders = 8

/** @throws {Problem} `rate_limited` */
export function assertReaderLimit({ log }: Command): void {
  if (log.readerCount < maxReaders) return
  throw new Problem(
    'rate_limited',
    `This command already has ${maxReaders} readers. Disconnect one, or read the output after the command has ended.`,
    { retryAfterSeconds: 1 },
  )
}
