/** `sandlot whoami`: the account, its usage this month and its sandboxes (SPEC 1.3). */
import { type Define, handleWith } from '../command.ts'
import { printable } from '../output.ts'

export const define: Define = (command) => {
  handleWith(command, async ({ api, output }) => {
    const account = await api.call('getAccount', {})
    const { usage, concurrent } = account
    const lines = [
      account.email,
      account.id,
      `${usage.sandbox_hours.toFixed(2)}/${usage.limit} sandbox-hours this month`,
      `${concurrent.active}/${concurrent.limit} concurrent sandboxes`,
    ]
    output.result(account, `${lines.map(printable).join('\n')}\n`)
  })
}
