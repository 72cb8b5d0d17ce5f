import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

test.each([2, -2])(
  "times are shown relative to the service's clock while the local clock is %i hours ahead",
  async (hours) => {
    const clock = join(user.home.folder, `clock${hours}.cjs`)
    writeFileSync(clock, `const now = Date.now; Date.now = () => now() + ${hours} * 3_600_000`)
    const show = async (args: string[]) => {
      const terminal = user.home.open(args, { NODE_OPTIONS: `--require ${clock}` })
      expect(await terminal.ended).toBe(0)
      return terminal.screen()
    }
    const shown = await show(['session', 'get', user.id])
    expect(shown).toMatch(/created +\d+ (s|min) ago/)
    expect(shown).toMatch(/expires +in \d+ min/)
    expect(await show(['session', 'ls'])).toMatch(/\d+ (s|min) ago +in \d+ min/)
  },
)
