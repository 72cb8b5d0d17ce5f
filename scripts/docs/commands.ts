/** The tables of docs/cli.md, from the commands as the client declares them. */
import type { Command } from 'commander'
import { pathOf } from '../../cli/core/help.ts'
import { collect, optionsOf, ownOptionsOf, sentence } from '../../cli/core/manual.ts'
import { topics } from '../../cli/core/topics.ts'
import { describeProgram } from '../../cli/program.ts'
import { code, fenced, table } from './table.ts'

export async function commands(): Promise<string> {
  const { program, load } = describeProgram()
  const declared = await collect(program, load)
  const rows = declared.map((command) => describe(command, optionsOf(program)))
  return table(['command', 'what it does', 'its own options'], rows)
}

function describe(command: Command, common: ReturnType<typeof optionsOf>): string[] {
  const [usage = ''] = command.usage().split('\n')
  return [
    code(`${pathOf(command)} ${usage.replace(/\[options\] ?/, '')}`.trim()),
    sentence(command.description()),
    ownOptionsOf(command, common)
      .map(({ long, short }) => code(long ?? short ?? ''))
      .join(' '),
  ]
}

export function globalOptions(): string {
  const { program } = describeProgram()
  const rows = optionsOf(program).map(({ flags, description, argChoices = [] }) => [
    code(flags),
    [sentence(description), argChoices.map(code).join(', ')].filter((text) => text !== '').join(' '),
  ])
  return table(['option', 'what it does'], rows)
}

/** As `sandlot help settings` prints it. */
export const localSettings = (): string => fenced(topics.settings!())

/** As `sandlot help exit-codes` prints it. */
export const exitCodes = (): string => fenced(topics['exit-codes']!())
