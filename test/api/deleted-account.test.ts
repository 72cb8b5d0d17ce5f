import { expect, test } from 'vitest'
import type { Refusal } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

test.each([
  ['getAccount', {}],
  ['createSecret', { body: { name: 'NAME', value: 'value' } }],
  ['setAllowlist', { body: { commands: ['ls'] } }],
  ['clearAllowlist', {}],
] as const)(
  "the route %s rejects a deleted account's credential without an internal error",
  async (name, options) => {
    const alice = await world.account()
    await alice.call('listSandboxes')
    await world.db.query('delete from account where id = ?', [alice.id])
    const refusal = await alice.call(name, options as never).catch((error: Refusal) => error)
    expect(refusal).toMatchObject({ status: 401, code: 'invalid_credentials' })
  },
)
