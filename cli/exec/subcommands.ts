/**
 * `sandlot exec ls`, `logs` and `kill`, told apart from the programs of these names. Only the words
 * that were typed decide, so a line means the same wherever and whenever it runs.
 */
import { Command } from 'commander'
import { addCommonOptions, addSessionOption, type Define } from '../core/command.ts'
import { isId } from '../core/session.ts'

interface Subcommand {
  summary: string
  /** Whether an id of a command among its words shows that it is meant. */
  takesId: boolean
  load(): Promise<{ define: Define }>
}

export const subcommands: Record<string, Subcommand> = {
  ls: {
    summary: 'list the commands of a session, newest first',
    takesId: false,
    load: () => import('../commands/exec/ls.ts'),
  },
  logs: {
    summary: 'print what a command has printed so far',
    takesId: true,
    load: () => import('../commands/exec/logs.ts'),
  },
  kill: {
    summary: 'send a signal to a command',
    takesId: true,
    load: () => import('../commands/exec/kill.ts'),
  },
}

/**
 * Runs the subcommand that the line means.
 * @param exec parsed: its `args` are the words that would be run
 * @returns false when they are to be run
 */
export async function runSubcommand(exec: Command, exitWith: (code: number) => void): Promise<boolean> {
  const [name = '', ...words] = exec.args
  if (!Object.hasOwn(subcommands, name) || isLiteral(exec) || hasOptionsToRun(exec)) return false
  const { summary, takesId, load } = subcommands[name]!
  const { define } = await load()
  if (!(takesId && words.some(looksLikeId)) && !isTaken(define, words)) return false

  const command = exec.command(name).description(summary)
  // The action itself explains what it cannot take, with the exit code of wrong usage.
  command.allowUnknownOption().allowExcessArguments()
  addCommonOptions(command)
  define(command, exitWith)
  await command.parseAsync(words, { from: 'user' })
  return true
}

/** Whether `--` stands right before the words. */
const isLiteral = ({ args, parent }: Command): boolean => parent?.args.at(-args.length - 1) === '--'

/** Whether some option before the words is about running something. */
function hasOptionsToRun(exec: Command): boolean {
  const others = new Command()
  addCommonOptions(addSessionOption(others))
  const isOther = (name: string) => others.options.some((option) => option.attributeName() === name)
  const given = Object.keys(exec.opts()).filter((name) => exec.getOptionValueSource(name) !== 'default')
  return given.some((name) => !isOther(name))
}

const looksLikeId = (word: string): boolean => word.startsWith('exec_')

/** Whether the words are options of the subcommand and nothing else. `ls -s src` is about sizes: behind -s is an id. */
function isTaken(define: Define, words: string[]): boolean {
  const probe = new Command().exitOverride().configureOutput({ outputError: () => {} })
  addCommonOptions(probe)
  define(probe, () => {})
  try {
    const options = words.filter((word) => word !== '--help' && word !== '-h')
    const { operands, unknown } = probe.parseOptions(options)
    const { session } = probe.opts<{ session?: string }>()
    const isSession =
      session === undefined || isId(session) || words.some((word) => /^--session(=|$)/.test(word))
    return operands.length === 0 && unknown.length === 0 && isSession
  } catch {
    return false // an option without its value
  }
}
