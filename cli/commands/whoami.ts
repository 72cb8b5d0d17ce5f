import type { SandboxUsage } from '../../shared/contract/account.ts'
import type { Api } from '../core/api.ts'
import { defineCommand } from '../core/command.ts'
import { CliError } from '../core/errors.ts'
import { accountFields, sandboxUsageFields } from '../core/shapes.ts'
import { showTime } from '../core/times.ts'

export const define = defineCommand<{ usage?: boolean; month?: string }>({
  declare: (command) =>
    command
      .option('--usage', 'show how many seconds each sandbox used in the month, and the sum')
      .option(
        '--month <month>',
        'with --usage: the month, such as 2026-11 (UTC); by default the current one',
      ),
  examples: [
    'sandlot whoami',
    'sandlot whoami --json=usage,concurrent',
    'sandlot whoami --usage --month 2026-11',
  ],
  fields: ({ usage }) => (usage ? sandboxUsageFields : accountFields),
  handle: async ({ options, api, output }) => {
    if (options.usage) {
      const usage = await readUsage(api, options.month)
      const rows = usage.data.map(({ id, name, created_at, seconds }) => [
        id,
        name ?? '',
        showTime(created_at),
        seconds.toFixed(3),
      ])
      const total = (usage.total.milliseconds / 1000).toFixed(3)
      output.table(
        usage,
        ['ID', 'NAME', 'CREATED', 'SECONDS'],
        [...rows, ['total', usage.month, showTime(usage.as_of), total]],
      )
      return
    }
    if (options.month !== undefined) throw new CliError('usage', '--month needs --usage.')
    const account = await api.call('getAccount', {})
    const { usage, concurrent, api_key } = account
    const lines = [
      account.email,
      account.id,
      `${usage.sandbox_hours.toFixed(2)}/${usage.limit} sandbox-hours this month`,
      `${concurrent.active}/${concurrent.limit} concurrent sandboxes`,
      // Older services do not send the scope.
      ...(api_key?.scope === 'run' ? ['this key has the scope run'] : []),
    ]
    output.result(account, `${lines.join('\n')}\n`)
  },
})

/**
 * Loads all pages of the usage per session. Every page reports the usage at the time of the first request, so
 * the rows add up to the total.
 */
async function readUsage(api: Api, month: string | undefined) {
  const data: SandboxUsage[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await api.call('getUsage', { query: { month, limit: 100, cursor } })
    data.push(...page.data)
    if (page.next_cursor === null) return { month: page.month, as_of: page.as_of, total: page.total, data }
    cursor = page.next_cursor
  }
}
