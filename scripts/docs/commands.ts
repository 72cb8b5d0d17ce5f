import type { Command, Option } from 'commander'
import { pathOf } from '../../cli/core/help.ts'
import { topics } from '../../cli/core/topics.ts'
import { describeProgram } from '../../cli/program.ts'
import { code, fenced, table } from './table.ts'

export async function commands(): Promise<string> {
  const { program, load } = describeProgram()
  const declared = await collect(program, load)
  const rows = declared.map((command) => describe(command, optionsOf(program)))
  return table(['command', 'description', 'options'], rows)
}

/** Returns all visible commands and subcommands, in the order of `--help`. */
async function collect(parent: Command, load: (command: Command) => Promise<void>): Promise<Command[]> {
  const found: Command[] = []
  const visible = parent.createHelp().visibleCommands(parent)
  for (const command of parent.commands.filter((each) => visible.includes(each))) {
    await load(command)
    found.push(...(command.commands.length > 0 ? await collect(command, load) : [command]))
  }
  return found
}

function describe(command: Command, common: Option[]): string[] {
  const [usage = ''] = command.usage().split('\n')
  return [
    code(`${pathOf(command)} ${usage.replace(/\[options\] ?/, '')}`.trim()),
    sentence(command.description()),
    optionsOf(command)
      .filter(({ long }) => !common.some((each) => each.long === long))
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
  return table(['option', 'description'], rows)
}

export const localSettings = (): string => fenced(topics.settings!())

export const exitCodes = (): string => fenced(topics['exit-codes']!())

const optionsOf = (command: Command): Option[] => command.createHelp().visibleOptions(command)

const sentence = (words: string): string =>
  words === '' ? '' : `${words[0]!.toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`
