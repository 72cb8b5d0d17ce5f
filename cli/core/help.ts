import { type Command, Help, type Option } from 'commander'
import { globalGroup } from './command.ts'

/** Formats a command's help. Lists the global options last, and describes them only in `sandlot --help`. */
export function formatHelp(command: Command, helper: Help): string {
  const isProgram = command.parent === null
  const options = helper.visibleOptions(command)
  const last = isProgram
    ? options
    : options.filter(({ helpGroupHeading }) => helpGroupHeading === globalGroup)
  const own: Help = Object.assign(Object.create(helper), {
    visibleOptions: () => options.filter((option) => !last.includes(option)),
  })
  const text = Help.prototype.formatHelp.call(own, command, own)
  const end = isProgram ? describeOptions(command, helper, last) : listOptions(helper, last)
  return `${text}\n${end}\n`
}

/** Returns the full name of a command, such as `sandlot session create`. */
export const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

function describeOptions(command: Command, helper: Help, options: Option[]): string {
  const width = helper.padWidth(command, helper)
  const items = options.map((option) =>
    helper.formatItem(helper.optionTerm(option), width, helper.optionDescription(option), helper),
  )
  return ['Options of every command:', ...items].join('\n')
}

function listOptions(helper: Help, options: Option[]): string {
  const names = options.map(({ long }) => long).join(' ')
  const words = `Options of every command, described in sandlot --help: ${names}`
  return helper.boxWrap(words, helper.helpWidth ?? 80)
}
