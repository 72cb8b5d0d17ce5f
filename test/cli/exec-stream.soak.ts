/** Memory use of `sandlot exec` with input and output larger than the buffers. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { pipeThrough } from './pipe.ts'
import { makeUsers, shareSession } from './users.ts'

const user = shareSession(makeUsers(shareWorld()))

test('`exec` passes 100 MiB of binary data through unchanged in constant memory', async () => {
  // With a small young generation, growth means retained data rather than garbage.
  const args = ['--max-semi-space-size=4', clientPath, 'exec', '--', 'cat']
  const { sent, received, peaks, code } = await pipeThrough(args, user.home.environment(), 100)
  expect(received).toEqual(sent)
  expect(code).toBe(0)
  // Retaining the data would take more than 90 MiB.
  expect(peaks.afterTenth).toBeGreaterThan(0)
  expect(peaks.atEnd - peaks.afterTenth).toBeLessThan(64 * 1024 * 1024)
})
