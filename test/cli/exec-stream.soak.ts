/** `sandlot exec` between pipes that carry far more than it may hold. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { pipeThrough } from './pipe.ts'
import { makeUsers, shareSession } from './users.ts'

const user = shareSession(makeUsers(shareWorld()))

test('100 MiB of any bytes go in and come out whole, and the client does not grow', async () => {
  // Little room for garbage, so that growth is what the client holds.
  const args = ['--max-semi-space-size=4', clientPath, 'exec', '--', 'cat']
  const { sent, received, peaks, code } = await pipeThrough(args, user.home.environment(), 100)
  expect(received).toEqual(sent)
  expect(code).toBe(0)
  // One that held what it passes on would grow by 90 MiB and more.
  expect(peaks.afterTenth).toBeGreaterThan(0)
  expect(peaks.atEnd - peaks.afterTenth).toBeLessThan(64 * 1024 * 1024)
})
